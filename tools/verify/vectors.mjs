// Holds format.mjs against the golden vectors, and each vector against its
// mutations: node tools/verify/vectors.mjs t/vectors.  Prints TAP.  The name of
// a file behind it is for that file only, and then "plain" for no mutations.

import fs from 'node:fs';
import path from 'node:path';
import * as f from './format.mjs';

const dir = process.argv[2] ?? 't/vectors';
const only = process.argv[3];
const plain = process.argv[4] === 'plain';
const load = (name) => JSON.parse(fs.readFileSync(path.join(dir, name)));
const hex = (bytes) => bytes.toString('hex');

let n = 0, failed = 0;

function ok(good, what) {
    failed += !good;
    console.log(`${good ? 'ok' : 'not ok'} ${++n} - ${what}`);
}

function refuses(work) {
    try {
        work();
    } catch (e) {
        if (!(e instanceof f.FormatError)) {
            throw e;
        }

        return true;
    }

    return false;
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

// Every bit of some bytes, one after another.

function countFlips(bytes, refused) {
    const copy = Buffer.from(bytes);
    let good = 0;

    for (let i = 0; i < copy.length * 8; i++) {
        copy[i >> 3] ^= 1 << (i & 7);
        good += refused(copy);
        copy[i >> 3] ^= 1 << (i & 7);
    }

    return good;
}

// ---- entries ---------------------------------------------------------------

// An entry as the vectors describe it.

function describe(e) {
    const d = {
        kind: e.kind, ledger: String(e.ledger), seq: String(e.seq),
        time_ms: String(e.time_ms),
    };
    const text = (name) => name in e && (d[name] = f.utf8(e[name]));
    const number = (name) => name in e && (d[name] = String(e[name]));
    const plain = (name) => name in e && (d[name] = e[name]);
    const bytes = (name) => name in e && (d[name] = hex(e[name]));

    [ 'asset', 'account', 'to' ].forEach(plain);
    number('amount');
    number('nonce');
    bytes('nonce16');
    text('id');
    number('source_ms');
    text('scope');
    text('key');
    number('ref');

    if ('posting' in e) {
        [ d.posting_first, d.posting_n ] = e.posting.map(String);
    }

    number('expiry_ms');
    bytes('memo');
    text('cap');
    text('capref');
    number('schema');

    if (e.wallet) { d.wallet = 'yes'; }
    if (e.expired) { d.expired = 'yes'; }

    return d;
}

function testEntry(v) {
    const bytes = f.fromHex(v.bytes);
    const e = f.decodeEntry(bytes);
    const { name, bytes: _, txid, hashed, receipt, receipt_hash,
            leaf_blake3, leaf_sha256, ...want } = v;

    ok(same(describe(e), want), `${name}: decoded`);

    const ours = f.receiptOf(e);
    const theirs = f.parseReceipt(receipt);
    const { receipt_hash: __, seq, ...part } = ours;

    ok(f.txid(e) === txid && f.canonicalJson(part) === hashed
        && ours.receipt_hash === 'b3:' + receipt_hash
        && Object.keys(ours).every((k) => ours[k] === theirs[k])
        && Object.keys(theirs).length === Object.keys(ours).length,
        `${name}: its receipt`);
    f.checkReceipt(theirs);

    ok(hex(f.leafHash(f.b3, bytes)) === leaf_blake3
        && hex(f.leafHash(f.sha256, bytes)) === leaf_sha256,
        `${name}: its leaves`);

    if (!plain) {
        mutateEntry(name, bytes, want, receipt);
    }
}

function mutateEntry(name, bytes, want, receipt) {
    let prefixes = 0;

    for (let i = 0; i < bytes.length; i++) {
        prefixes += refuses(() => f.decodeEntry(bytes.subarray(0, i)));
    }

    ok(prefixes === bytes.length, `${name}: all prefixes are refused`);

    // With another bit it is another entry, with another receipt or leaf.

    const flips = countFlips(bytes, (copy) => {
        let other;
        return refuses(() => { other = describe(f.decodeEntry(copy)); })
            || !same(other, want);
    });

    ok(flips === bytes.length * 8, `${name}: no bit can be lost`);
    ok(testReceipt(receipt) === 0, `${name}: no member can be changed`);
}

// How many changes of a receipt are not noticed.

function testReceipt(text) {
    const receipt = f.parseReceipt(text);
    let unnoticed = 0;

    for (const name of Object.keys(receipt)) {
        const { [name]: old, ...without } = receipt;
        const tries = [ without ];

        if (typeof old === 'string') {
            tries.push({ ...receipt, [name]: old + 'x' });
            tries.push({ ...receipt, [name]: old.slice(0, -1) });

            const at = old.length >> 1;
            const other = String.fromCharCode(old.charCodeAt(at) ^ 1);
            tries.push({ ...receipt,
                [name]: old.slice(0, at) + other + old.slice(at + 1) });

        } else {
            const one = typeof old === 'bigint' ? 1n : 1;
            tries.push({ ...receipt, [name]: old + one });
        }

        for (const changed of tries) {
            unnoticed += !refuses(() => f.checkReceipt(changed));
        }
    }

    unnoticed += !refuses(() => f.checkReceipt({ ...receipt, more: 'x' }));

    return unnoticed;
}

function testEntries() {
    const { entries, refused } = load('entries.json');

    entries.forEach(testEntry);
    refused.forEach((v) => ok(refuses(() =>
        f.decodeEntry(f.fromHex(v.bytes))), `refused: ${v.name}`));
}

// ---- trees, proofs, checkpoints --------------------------------------------

let tree;

function inclusion(H, p) {
    f.verifyInclusion(H, f.fromHex(p.leaf, 32), BigInt(p.seq) - 1n,
        BigInt(p.size), p.path.map((h) => f.fromHex(h, 32)),
        f.fromHex(p.root, 32));
}

function consistency(H, p) {
    f.verifyConsistency(H, BigInt(p.from), BigInt(p.to),
        f.fromHex(p.from_root, 32), f.fromHex(p.to_root, 32),
        p.path.map((h) => f.fromHex(h, 32)));
}

const flip = (text) => (text[0] === '0' ? '1' : '0') + text.slice(1);

// Every hash and number of a proof, changed; a hash more, less, moved.

function mutations(p, hashes, numbers) {
    const all = [];

    hashes.forEach((k) => all.push({ ...p, [k]: flip(p[k]) }));
    numbers.forEach((k) => all.push({ ...p, [k]: p[k] + 1 },
        { ...p, [k]: p[k] - 1 }));

    p.path.forEach((h, i) => {
        all.push({ ...p, path: p.path.with(i, flip(h)) });
        all.push({ ...p, path: p.path.toSpliced(i, 1) });
    });

    all.push({ ...p, path: [ ...p.path, flip('00'.repeat(32)) ] });

    if (p.path.length > 1) {
        all.push({ ...p, path: p.path.toReversed() });
    }

    return all;
}

function testTree(digest) {
    const H = f.digestNamed(digest);
    const t = tree[digest];
    const leaves = tree.entries.map((e) => f.leafHash(H, f.fromHex(e)));

    ok(t.roots.every((root, i) => hex(f.rootOf(H, leaves.slice(0, i)))
        === root), `${digest}: ${t.roots.length} roots`);

    let good = 0, bad = 0, tried = 0;

    for (const p of t.inclusion) {
        inclusion(H, p);
        good += p.leaf === hex(leaves[p.seq - 1])
            && p.root === t.roots[p.size];

        // a size may be changed where the shape of the path stays the same:
        // but then the root is not that of the size, which 'root' tells

        for (const m of mutations(p, [ 'leaf', 'root' ], [ 'seq' ])) {
            tried++;
            bad += refuses(() => inclusion(H, m));
        }
    }

    ok(good === t.inclusion.length, `${digest}: ${good} inclusion proofs`);
    ok(bad === tried, `${digest}: ${tried} changed ones are refused`);

    good = bad = tried = 0;

    for (const p of t.consistency) {
        consistency(H, p);
        good += p.from_root === t.roots[p.from]
            && p.to_root === t.roots[p.to];

        // from nothing there is a proof to everything

        const roots = p.from === 0 && p.to !== 0 ? [ 'from_root' ]
            : [ 'from_root', 'to_root' ];

        for (const m of mutations(p, roots, [])) {
            tried++;
            bad += refuses(() => consistency(H, m));
        }
    }

    ok(good === t.consistency.length, `${digest}: ${good} consistency proofs`);
    ok(bad === tried, `${digest}: ${tried} changed ones are refused`);

    testNotes(digest, t);
}

function testNotes(digest, t) {
    const key = f.parseKey(tree.public_key);

    for (const name of [ 'checkpoint', 'checkpoint_with_witness' ]) {
        const bytes = Buffer.from(t[name]);
        const cp = f.parseNote(bytes, key);

        ok(cp.origin === key.name && cp.size === 20n
            && hex(cp.root) === t.roots[20], `${digest}: ${name}`);

        // nothing of the text or of the key's own line can be changed

        const line = bytes.indexOf('\u2014 ');
        const end = bytes.indexOf('\n', line) + 1;
        const signed = bytes.subarray(0, end);
        const rest = bytes.subarray(end);

        const noticed = countFlips(signed, (copy) => refuses(() =>
            f.parseNote(Buffer.concat([ copy, rest ]), key)));

        ok(noticed === signed.length * 8,
            `${digest}: ${name} with any bit flipped is refused`);
    }

    const other = tree.public_key.replace(/.{4}$/, 'AAAA');
    ok(refuses(() => f.parseKey(other)), 'another key under the same id');
}

function testTrees() {
    tree = load('tree.json');
    testTree('blake3');
    testTree('sha256');
}

// ---- journal, pages, checkpoint of the engine ------------------------------

function rowOf(r) {
    const row = { ...r };

    for (const k of [ 'prev_root', 'root', 'checkpoint', 'body', 'notes',
                      'chain' ])
    {
        row[k] = f.fromHex(r[k]);
    }

    return row;
}

function testRows(store) {
    let before = Buffer.alloc(32);
    const leaves = [];
    let root = f.b3();

    for (const r of store.rows.map(rowOf)) {
        ok(r.prev_root.equals(root), `row ${r.seq}: prev_root`);
        ok(f.bodyEntries(r).every((e, i) => {
            const { seq, time_ms } = f.decodeEntry(e);
            leaves.push(f.leafHash(f.b3, e));
            return seq === BigInt(r.seq) + BigInt(i)
                && time_ms === BigInt(r.time_ms);
        }), `row ${r.seq}: entries`);
        root = f.rootOf(f.b3, leaves);
        ok(r.root.equals(root), `row ${r.seq}: root`);
        ok(r.chain.equals(f.rowChain(before, r)), `row ${r.seq}: chain`);

        for (const k of [ 'seq', 'count', 'epoch', 'time_ms' ]) {
            const m = { ...r, [k]: BigInt(r[k]) + 1n };
            ok(!r.chain.equals(f.rowChain(before, m)),
                `row ${r.seq}: chain notices ${k}`);
        }

        const moved = { ...r, body: Buffer.concat([ r.body, r.notes ]),
                        notes: Buffer.alloc(0) };
        ok(r.notes.length === 0
            || !r.chain.equals(f.rowChain(before, moved)),
            `row ${r.seq}: chain keeps body and notes apart`);
        before = r.chain;
    }

    const notes = f.decodeNotes(rowOf(store.rows[2]).notes);
    ok(notes.length === 1 && notes[0].tag.every((b) => b === 0xa5)
        && notes[0].digest.every((b) => b === 0x5a)
        && notes[0].results.length === 2
        && notes[0].results[0].seq === 4n
        && notes[0].results[1].reason === 11
        && notes[0].results[1].value === 300n, 'notes');
}

function testPage(store, name, kind, text) {
    const page = f.fromHex(store[name]);
    ok(f.pageText(page, kind).toString() === text, `page: ${name}`);

    const used = page.subarray(0, 28 + text.length);
    const noticed = countFlips(used, (copy) => refuses(() => f.pageText(
        Buffer.concat([ copy, page.subarray(used.length) ]), kind)));
    ok(noticed === used.length * 8, `page: ${name} with any bit flipped`);
}

function testCheckpoint(store) {
    const c = store.checkpoint;
    const slices = c.slices.map((s) => ({ ...s, body: f.fromHex(s.body) }));

    ok(hex(f.generationHash(slices)) === c.hash, 'the hash of a generation');

    const [ a, h, r, caps, s ] = slices.map((x) => f.decodeSlice(x.body));

    ok(same(a.records.map((x) => x.balances.reduce((d, b) => ({ ...d,
            asset: String(b.asset), available: String(b.available),
            held: String(b.held) }),
        { name: x.name, nonce: String(x.nonce), version: String(x.version),
          day: String(x.day), daily: String(x.daily) })), c.accounts),
        'accounts');
    ok(h.records.length === 1 && Object.entries(c.hold).every(([ k, v ]) =>
        String(h.records[0][k]) === v), 'holds');
    ok(r.records.length === 1 && r.records[0].seq === 2n
        && String(r.records[0].total) === c.reversed_2, 'reversed');
    ok(caps.records.length === 1
        && caps.records[0].name.toString() === 'dev:cap-1'
        && String(caps.records[0].sum) === c.capability_sum, 'capabilities');
    ok(String(s.day) === c.day && s.accounts === 3n && s.assets.length === 1
        && s.assets[0].name === c.asset
        && String(s.assets[0].minted) === c.minted
        && String(s.assets[0].burned) === c.burned, 'assets');
}

function testStore() {
    const store = load('store.json');

    testRows(store);
    testPage(store, 'head', 'ronhead1', 'a note\n');
    testPage(store, 'mark', 'ronmark1', 'fsync failed');
    testCheckpoint(store);
}

// ----------------------------------------------------------------------------

const all = { 'entries.json': testEntries, 'tree.json': testTrees,
              'store.json': testStore };

for (const [ name, test ] of Object.entries(all)) {
    if (only === undefined || only === name) {
        test();
    }
}

console.log(`1..${n}`);
process.exitCode = failed ? 1 : 0;
