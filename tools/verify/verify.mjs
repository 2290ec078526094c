#!/usr/bin/env node

// Verifies what a ledger says, without the ledger's program: everything here
// and in format.mjs follows docs/FORMAT.md.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import * as f from './format.mjs';

const USAGE = `usage: node verify.mjs COMMAND ...

  entry HEX                    prints the entry that these bytes are
  receipt FILE                 a receipt; with its proof if it has one
  proof FILE                   an inclusion or consistency proof, as JSON
  checkpoint FILE              a signed note
  journal DIR                  a whole ledger: rows, entries, roots, tiles,
                               money, head; reads ledger.db with sqlite3

  --key KEY                    the ledger's verifier key (or a file with it)
  --checkpoint FILE            the signed note of the proof's size or 'to'
  --digest blake3|sha256       of the tree; blake3

FILE may be - for the standard input.  Without --key no signature is checked,
and the answer says so.  The exit code is 0 when all is as it should be, 1
when something does not hold, 2 when it could not be tried.  BLAKE3 is
npm install @noble/hashes, where you call this or along NODE_PATH.`;

const hex = (bytes) => bytes.toString('hex');

function fail(why) {
    console.error(why);
    process.exit(2);
}

function read(file) {
    return fs.readFileSync(file === '-' ? 0 : file);
}

function options(args) {
    const o = { digest: 'blake3', rest: [] };

    while (args.length) {
        const arg = args.shift();
        const match = /^--(key|checkpoint|digest)$/.exec(arg);

        if (!match) {
            o.rest.push(arg);
        } else if (args.length) {
            o[match[1]] = args.shift();
        } else {
            fail(`${arg} needs a value\n\n${USAGE}`);
        }
    }

    if (o.digest !== 'blake3' && o.digest !== 'sha256') {
        fail(`--digest ${o.digest}: blake3 or sha256`);
    }

    if (o.key !== undefined) {
        o.key = f.parseKey(fs.existsSync(o.key)
            ? fs.readFileSync(o.key, 'utf8') : o.key);
    }

    o.H = f.digestNamed(o.digest);

    return o;
}

const signedBy = (o) => o.key ? `signed by ${o.key.name}`
    : 'SIGNATURE NOT CHECKED: no --key';

// ---- commands --------------------------------------------------------------

function entry(o) {
    const e = f.decodeEntry(f.fromHex(o.rest[0].trim().toLowerCase()));

    for (const [ name, value ] of Object.entries(e)) {
        console.log(name.padEnd(12), Buffer.isBuffer(value) ? hex(value)
            : Array.isArray(value) ? value.join(' ') : String(value));
    }
}

function receipt(o) {
    const r = f.parseReceipt(read(o.rest[0]).toString());
    const id = f.checkReceipt(r);

    console.log(`receipt of seq ${id.seq} in ledger ${id.ledger}: ` +
        'its hash is right');

    if (r.proof) {
        console.log(receiptProof(o, r));
    } else if (o.key || o.checkpoint) {
        f.need(false, 'the receipt has no proof');
    }
}

function receiptProof(o, r) {
    const p = r.proof;
    const bytes = f.fromBase64(p.entry);
    const e = f.decodeEntry(bytes);
    const ours = f.receiptOf(e);
    const { proof, ...said } = r;

    f.need(Object.keys(ours).length === Object.keys(said).length
        && Object.keys(ours).every((k) => ours[k] === said[k]),
        'the receipt is not that of the entry');

    const leaf = f.leafHash(o.H, bytes);
    f.need(hex(leaf) === p.leaf, 'the leaf is not that of the entry');

    f.need(o.checkpoint || typeof p.checkpoint === 'string',
        'no checkpoint vouches for it yet');

    const cp = f.parseNote(o.checkpoint ? read(o.checkpoint)
        : Buffer.from(p.checkpoint), o.key);
    f.need(cp.size === BigInt(p.size), 'the checkpoint has another size');
    f.verifyInclusion(o.H, leaf, e.seq - 1n, cp.size,
        p.path.map((h) => f.fromHex(h, 32)), cp.root);

    return `it is in the ledger "${cp.origin}" of ${cp.size} entries, `
        + signedBy(o);
}

function proof(o) {
    const p = JSON.parse(read(o.rest[0]));

    if (p.proof) {
        return receipt(o);
    }

    const path = p.path.map((h) => f.fromHex(h, 32));
    const cp = o.checkpoint && f.parseNote(read(o.checkpoint), o.key);

    if ('seq' in p) {
        f.verifyInclusion(o.H, f.fromHex(p.leaf, 32), BigInt(p.seq) - 1n,
            BigInt(p.size), path, f.fromHex(p.root, 32));
        sameRoot(cp, p.size, p.root);
        console.log(`leaf ${p.seq} is in the tree of ${p.size}`);

    } else {
        f.verifyConsistency(o.H, BigInt(p.from), BigInt(p.to),
            f.fromHex(p.from_root, 32), f.fromHex(p.to_root, 32), path);
        sameRoot(cp, p.to, p.to_root);
        console.log(`the tree of ${p.to} begins with the tree of ${p.from}`);
    }

    console.log(cp ? `under the root of "${cp.origin}", ${signedBy(o)}`
        : 'under roots that NOTHING VOUCHES FOR: no --checkpoint');
}

function sameRoot(cp, size, root) {
    if (cp) {
        f.need(cp.size === BigInt(size), 'the checkpoint has another size');
        f.need(hex(cp.root) === root, 'the checkpoint has another root');
    }
}

function checkpoint(o) {
    const cp = f.parseNote(read(o.rest[0]), o.key);

    console.log(`${cp.origin}: ${cp.size} entries, root ${hex(cp.root)}, `
        + signedBy(o));
}

// ---- a whole journal -------------------------------------------------------

async function* sqlite(db, sql) {
    const child = spawn('sqlite3', [ '-readonly', '-batch', '-bail', db ],
        { stdio: [ 'pipe', 'pipe', 'inherit' ] });
    const ended = new Promise((resolve, reject) => {
        child.on('error', reject);
        child.on('close', resolve);
    });

    child.stdin.on('error', () => {});
    child.stdin.end(`.mode list\n.separator |\n${sql};\n`);

    for await (const line of readline.createInterface(child.stdout)) {
        yield line.split('|');
    }

    const code = await ended;

    if (code !== 0) {
        throw new Error(`sqlite3 ended with ${code}`);
    }
}

const ROWS = `SELECT seq, count, epoch, time_ms, hex(prev_root), hex(root),
  coalesce(hex(checkpoint), ''), hex(chain), coalesce(hex(notes), ''),
  hex(body) FROM journal ORDER BY seq`;

function rowOf(c) {
    const [ seq, count, epoch, time_ms ] = c.slice(0, 4).map(BigInt);
    const [ prev_root, root, checkpoint, chain, notes, body ] =
        c.slice(4).map((text) => Buffer.from(text, 'hex'));

    return { seq, count, epoch, time_ms, prev_root, root, chain, notes, body,
        checkpoint: checkpoint.length ? checkpoint : Buffer.alloc(32) };
}

async function journal(o) {
    const db = path.join(o.rest[0], 'ledger.db');
    const ledger = { peaks: [], money: new Map(), supply: new Map(),
                     levels: [], tiles: new Map(), n: 0n, holds: new Map(),
                     nonces: new Map(), reversals: new Map() };
    let head;

    f.need(fs.existsSync(db), `there is no ${db}`);

    for await (const [ format, id, digest ] of sqlite(db,
        'SELECT format, ledger_id, digest FROM meta'))
    {
        f.need(format === '1', `format ${format}`);
        Object.assign(ledger, { id: Number(id), H: f.digestNamed(digest),
                                digest });
    }

    f.need(ledger.H, 'meta is empty');

    const page = fs.readFileSync(path.join(o.rest[0], 'head'));

    if (page.some(Boolean)) {
        head = f.parseNote(f.pageText(page, 'ronhead1'), o.key);
    }

    let last = { seq: 1n, count: 0n, epoch: 0n, time_ms: 0n,
                 root: ledger.H(), chain: Buffer.alloc(32) };
    let rows = 0;

    for await (const columns of sqlite(db, ROWS)) {
        const row = rowOf(columns);

        try {
            checkRow(ledger, last, row);
        } catch (e) {
            e.message = `row ${row.seq}: ${e.message}`;
            throw e;
        }

        if (head && head.size >= row.seq
            && head.size < row.seq + row.count)
        {
            f.need(head.size === row.seq + row.count - 1n
                && head.root.equals(row.root),
                'the published head has another root');
            head.found = true;
        }

        last = row;
        rows++;
    }

    f.need(!head || head.size === 0n || head.found,
        `a head of ${head?.size} entries was published, the journal ends`
        + ` with ${ledger.n}`);
    checkPosting(ledger);
    checkSupply(ledger);
    await checkReversals(ledger, db);

    const tiles = await checkTiles(ledger, db);

    console.log(`${ledger.n} entries in ${rows} rows, ${tiles} tiles, `
        + `${ledger.digest}: root ${hex(last.root)}`);
    console.log(head ? `published head of ${head.size}, ${signedBy(o)}`
        : 'no head was published');
}

function checkRow(ledger, last, row) {
    f.need(row.seq === last.seq + last.count, 'seq does not follow');
    f.need(row.count >= 1n, 'no entries');
    f.need(row.epoch >= last.epoch, 'the epoch falls');
    f.need(row.time_ms >= last.time_ms, 'time falls');
    f.need(row.prev_root.equals(last.root), 'another root before');
    f.need(row.chain.equals(f.rowChain(last.chain, row)), 'broken chain');
    f.decodeNotes(row.notes);

    f.bodyEntries(row).forEach((bytes, i) => {
        const e = f.decodeEntry(bytes);

        f.need(e.seq === row.seq + BigInt(i), 'an entry with another seq');
        f.need(e.time_ms === row.time_ms, 'an entry with another time');
        f.need(e.ledger === ledger.id, 'an entry of another ledger');

        move(ledger, e);
        append(ledger, f.leafHash(ledger.H, bytes));
    });

    f.need(row.root.equals(f.foldPeaks(ledger.H, ledger.peaks)),
        'another root after');
}

function append(ledger, leaf) {
    f.appendLeaf(ledger.H, ledger.peaks, leaf);
    ledger.n++;

    for (let level = 0, hash = leaf; ; level++) {
        const tile = ledger.levels[level] ??= { index: 0n, hashes: [] };
        tile.hashes.push(hash);

        if (tile.hashes.length < 256) {
            return;
        }

        // by its id; and its root is a hash of the level above

        ledger.tiles.set(String(ledger.n << 3n | BigInt(level)),
            f.sha256(...tile.hashes));
        hash = f.rootOf(ledger.H, tile.hashes);
        ledger.levels[level] = { index: tile.index + 1n, hashes: [] };
    }
}

async function checkTiles(ledger, db) {
    let n = 0;

    for await (const [ id, text ] of sqlite(db,
        'SELECT id, hex(hashes) FROM tile'))
    {
        f.need(ledger.tiles.get(id)?.equals(
            f.sha256(Buffer.from(text, 'hex'))), `tile ${id} is another`);
        n++;
    }

    f.need(n === ledger.tiles.size, `${ledger.tiles.size - n} tiles are not `
        + 'there');

    return n;
}

// ---- money -----------------------------------------------------------------

function change(ledger, account, asset, held, amount) {
    const key = `${asset} ${held ? 'held' : 'available'} ${account}`;
    const balance = (ledger.money.get(key) ?? 0n) + amount;

    f.need(balance >= 0n, `${account} has less than nothing`);
    ledger.money.set(key, balance);
}

function move(ledger, e) {
    const { account, to, asset, amount } = e;
    const take = (who, held) => change(ledger, who, asset, held, -amount);
    const give = (who, held) => change(ledger, who, asset, held, amount);

    checkPosting(ledger, e);
    checkHold(ledger, e);
    checkNonce(ledger, e);

    switch (e.kind) {
    case 'Mint':
    case 'Burn': {
        const sign = e.kind === 'Mint' ? 1n : -1n;
        const supply = (ledger.supply.get(asset) ?? 0n) + sign * amount;

        f.need(supply < 1n << 128n, 'the supply is over 2^128-1');
        ledger.supply.set(asset, supply);
        return sign > 0n ? give(account, false) : take(account, false);
    }
    case 'Debit':
        return take(account, false);
    case 'Credit':
        return give(account, false);
    case 'Hold':
        take(account, false);
        return give(account, true);
    case 'Capture':
        take(account, true);
        return give(to, false);
    case 'Release':
        take(account, true);
        return give(account, false);
    case 'Reverse':
        ledger.reversals.set(e.ref,
            [ ...ledger.reversals.get(e.ref) ?? [], e ]);
        // falls through
    case 'Transfer':
        if (account !== undefined) { take(account, false); }
        if (to !== undefined) { give(to, false); }
    }
}

// Legs follow one another, and the last one closes the sums.

function checkPosting(ledger, e) {
    const open = ledger.posting;

    if (open) {
        f.need(e?.posting && e.posting[0] === open.first
            && e.posting[1] === open.n, `the posting of ${open.first} ends `
            + 'too early');
    }

    if (!e?.posting) {
        return;
    }

    const [ first, n ] = e.posting;
    const posting = open ?? { first, n, sums: new Map() };

    f.need(open || e.seq === first, 'a posting that has no beginning');

    const sign = e.kind === 'Credit' ? 1n : -1n;
    posting.sums.set(e.asset,
        (posting.sums.get(e.asset) ?? 0n) + sign * e.amount);
    ledger.posting = posting;

    if (e.seq === first + n - 1n) {
        f.need([ ...posting.sums.values() ].every((sum) => sum === 0n),
            `the posting of ${first} is not balanced`);
        ledger.posting = undefined;
    }
}

function checkHold(ledger, e) {
    if (e.kind === 'Hold') {
        ledger.holds.set(e.seq, { ...e, left: e.amount });
    }

    if (e.kind !== 'Capture' && e.kind !== 'Release') {
        return;
    }

    const hold = ledger.holds.get(e.ref);

    f.need(hold, `${e.kind} of ${e.ref}, which is no open Hold`);
    f.need(hold.account === e.account && hold.asset === e.asset
        && (e.kind === 'Release' || hold.to === e.to),
        `${e.kind} with other accounts than its Hold`);
    f.need(e.amount <= hold.left, `${e.kind} of more than is left`);
    f.need(!e.expired || hold.expiry_ms <= e.time_ms,
        'a Release before its Hold expired');

    hold.left -= e.amount;

    if (hold.left === 0n || e.kind === 'Release') {
        f.need(hold.left === 0n, 'a Release of less than is left');
        ledger.holds.delete(e.ref);
    }
}

function checkNonce(ledger, e) {
    if (e.wallet && e.nonce !== undefined && e.kind !== 'Mint') {
        f.need(e.nonce > (ledger.nonces.get(e.account) ?? 0n),
            `a nonce of ${e.account} was used or passed`);
        ledger.nonces.set(e.account, e.nonce);
    }
}

// What was reversed may be long ago: the journal is read a second time.

async function checkReversals(ledger, db) {
    if (ledger.reversals.size === 0) {
        return;
    }

    for await (const columns of sqlite(db, ROWS)) {
        const row = rowOf(columns);

        f.bodyEntries(row).forEach((bytes, i) => {
            const reversals = ledger.reversals.get(row.seq + BigInt(i));

            if (reversals) {
                checkReversal(f.decodeEntry(bytes), reversals);
            }
        });
    }
}

function checkReversal(e, reversals) {
    const from = { Transfer: e.to, Credit: e.account }[e.kind];
    const to = { Transfer: e.account, Debit: e.account }[e.kind];

    f.need(from !== undefined || to !== undefined,
        `a Reverse of ${e.kind} ${e.seq}`);
    f.need(reversals.every((r) => r.account === from && r.to === to
        && r.asset === e.asset),
        `a Reverse of ${e.seq} with other accounts`);
    f.need(reversals.reduce((sum, r) => sum + r.amount, 0n) <= e.amount,
        `more than all of ${e.seq} was reversed`);
}

function checkSupply(ledger) {
    const sums = new Map();

    for (const [ key, balance ] of ledger.money) {
        const asset = key.slice(0, key.indexOf(' '));
        sums.set(asset, (sums.get(asset) ?? 0n) + balance);
    }

    for (const [ asset, sum ] of sums) {
        f.need(sum === (ledger.supply.get(asset) ?? 0n),
            `${asset}: balances are not what was minted and not burned`);
    }
}

// ----------------------------------------------------------------------------

const commands = { entry, receipt, proof, checkpoint, journal };
const [ name, ...args ] = process.argv.slice(2);

if (name === '--help' || name === 'help') {
    console.log(USAGE);
    process.exit(0);
}

if (!Object.hasOwn(commands, name ?? '')) {
    fail(USAGE);
}

try {
    const o = options(args);

    if (o.rest.length !== 1) {
        fail(USAGE);
    }

    await commands[name](o);

} catch (e) {
    const wrong = e instanceof f.FormatError || e instanceof SyntaxError
        || e instanceof TypeError;

    console.error(wrong ? `does not verify: ${e.message}` : e.message);
    process.exitCode = wrong ? 1 : 2;
}
