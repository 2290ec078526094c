// The formats of docs/FORMAT.md, as functions that either return what the
// bytes say or throw a FormatError that says what is wrong with them.  Written
// from that page alone; numbers that can pass 2^53 are BigInt.

import crypto from 'node:crypto';
import { createRequire } from 'node:module';

const TIME_MAX = 253402300799999n;
const U64_MAX = (1n << 64n) - 1n;

export class FormatError extends Error {}

export function need(condition, why) {
    if (!condition) {
        throw new FormatError(why);
    }
}

// ---- hashes (section 1) ----------------------------------------------------

// BLAKE3 is not in Node: the package @noble/hashes is looked for where the
// command was called, beside this file, and along NODE_PATH.

function findBlake3() {
    const require = createRequire(import.meta.url);
    const paths = [ process.cwd(), new URL('.', import.meta.url).pathname ];

    try {
        const at = require.resolve('@noble/hashes/blake3.js', { paths });
        return require(at).blake3;

    } catch (e) {
        throw new Error('BLAKE3 is needed: npm install @noble/hashes ('
            + e.message.split('\n')[0] + ')');
    }
}

let blake3;

export function b3(...parts) {
    blake3 ??= findBlake3();
    return Buffer.from(blake3(Buffer.concat(parts)));
}

export function sha256(...parts) {
    const hash = crypto.createHash('sha256');
    parts.forEach((part) => hash.update(part));
    return hash.digest();
}

export function digestNamed(name) {
    need(name === 'blake3' || name === 'sha256', `no digest ${name}`);
    return name === 'blake3' ? b3 : sha256;
}

// ---- reading ---------------------------------------------------------------

export class Reader {
    constructor(bytes) {
        this.bytes = bytes;
        this.at = 0;
    }

    get left() {
        return this.bytes.length - this.at;
    }

    take(n) {
        need(n <= this.left, 'it ends too early');
        this.at += n;
        return this.bytes.subarray(this.at - n, this.at);
    }

    number(n) {
        return BigInt('0x' + this.take(n).toString('hex'));
    }

    u8() { return Number(this.number(1)); }
    u16() { return Number(this.number(2)); }
    u32() { return Number(this.number(4)); }
    u48() { return this.number(6); }
    u64() { return this.number(8); }

    varint() {
        let value = 0n;

        for (let i = 0n; ; i++) {
            need(i < 10n, 'a varint of more than ten bytes');
            const byte = BigInt(this.u8());
            value |= (byte & 0x7fn) << (7n * i);

            if (byte < 0x80n) {
                need(byte !== 0n || i === 0n, 'a varint that is too long');
                need(value <= U64_MAX, 'a varint over 2^64-1');
                return value;
            }
        }
    }

    text(low, high) {
        const n = this.varint();
        need(n <= BigInt(this.left), 'it ends too early');
        need(n >= BigInt(low) && n <= BigInt(high),
            `a text of ${n} bytes, ${low} to ${high} are possible`);
        return this.take(Number(n));
    }

    wide() {
        const low = this.varint();
        return this.varint() << 64n | low;
    }

    end() {
        need(this.left === 0, 'bytes behind the end');
    }
}

export function varint(value) {
    const bytes = [];

    for (value = BigInt(value); value >= 0x80n; value >>= 7n) {
        bytes.push(Number(value & 0x7fn | 0x80n));
    }

    return Buffer.from([ ...bytes, Number(value) ]);
}

export function u64(value) {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64BE(BigInt(value));
    return bytes;
}

export function fromBase64(text) {
    const bytes = Buffer.from(text, 'base64');
    need(bytes.toString('base64') === text, 'not base64');
    return bytes;
}

export function fromHex(text, length) {
    need(/^(?:[0-9a-f]{2})*$/.test(text), 'not hex');
    const bytes = Buffer.from(text, 'hex');
    need(length === undefined || bytes.length === length,
        `${length} bytes are expected`);
    return bytes;
}

export function utf8(bytes) {
    try {
        return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
            .decode(bytes);
    } catch {
        throw new FormatError('not UTF-8');
    }
}

// ---- entries (section 2) ---------------------------------------------------

const NAME = /^[A-Za-z0-9:\/_.@-]+$/;

const name = (high) => (r) => {
    const text = r.text(1, high).toString('latin1');
    need(NAME.test(text), 'a character that no account or asset has');
    return text;
};

const text = (high) => (r) => {
    const value = r.text(1, high);
    utf8(value);
    return value;
};

const inRange = (read, low, high, what) => (r) => {
    const value = read(r);
    need(value >= low && value <= high, `${what} out of range`);
    return value;
};

const varintIn = (low, high, what) =>
    inRange((r) => r.varint(), low, high, what);
const time = (what) => inRange((r) => r.u48(), 0n, TIME_MAX, what);

function amount(r) {
    const n = r.u8();
    need(n >= 1 && n <= 16, 'an amount has 1 to 16 bytes');
    const digits = r.take(n);
    need(digits[0] !== 0, 'an amount begins with a zero');
    return BigInt('0x' + digits.toString('hex'));
}

// In the order of their bits; what a reader returns is put under the name.

const FIELDS = [
    [ 'asset', name(32) ],
    [ 'account', name(256) ],
    [ 'to', name(256) ],
    [ 'amount', amount ],
    [ 'nonce', varintIn(1n, (1n << 53n) - 1n, 'nonce') ],
    [ 'nonce16', (r) => r.take(16) ],
    [ 'id', text(128) ],
    [ 'source_ms', time('source time') ],
    [ 'scope', text(256) ],
    [ 'key', text(128) ],
    [ 'ref', (r) => r.varint() ],
    [ 'posting', (r) => [ r.varint(), r.varint() ] ],
    [ 'expiry_ms', time('expiry') ],
    [ 'memo', (r) => r.take(32) ],
    [ 'cap', text(256) ],
    [ 'capref', text(128) ],
    [ 'schema', varintIn(2n, (1n << 32n) - 1n, 'v') ],
    [ 'wallet', () => true ],
    [ 'expired', () => true ],
];

const COMMON = 'nonce nonce16 id source_ms scope key memo cap capref schema '
    + 'wallet';
const MONEY = 'asset account amount';

const kind = (name, op, needs, may = '') => ({
    name, op,
    needs: needs.split(' '),
    may: `${needs} ${may} ${COMMON}`.split(' '),
});

export const KINDS = [
    null,
    kind('Mint', 'issue', MONEY),
    kind('Burn', 'burn', MONEY),
    kind('Transfer', 'transfer', `${MONEY} to`),
    kind('Debit', 'debit', `${MONEY} posting`),
    kind('Credit', 'credit', `${MONEY} posting`),
    kind('Hold', 'hold', `${MONEY} to`, 'expiry_ms'),
    kind('Capture', 'capture', `${MONEY} to ref`),
    kind('Release', 'release', `${MONEY} ref`, 'expired'),
    kind('Reverse', 'reverse', 'asset amount ref', 'account to'),
];

export function decodeEntry(bytes) {
    need(bytes.length <= 2048, 'an entry is not longer than 2048 bytes');

    const r = new Reader(bytes);
    need(r.u8() === 1, 'the version is not 1');
    const kind = KINDS[r.u8()];
    need(kind, 'no such kind');

    const e = {
        kind: kind.name, op: kind.op, ledger: r.u16(), seq: r.varint(),
        time_ms: r.u48(),
    };

    need(e.seq >= 1n && e.seq < 1n << 53n, 'seq out of range');
    need(e.time_ms <= TIME_MAX, 'time out of range');

    const fields = r.varint();
    need(fields >> BigInt(FIELDS.length) === 0n, 'an unknown field');

    FIELDS.forEach(([ name, read ], bit) => {
        if (fields >> BigInt(bit) & 1n) {
            need(kind.may.includes(name), `${kind.name} with ${name}`);
            e[name] = read(r);
        }
    });

    r.end();
    checkEntry(e, kind);

    return e;
}

function checkEntry(e, kind) {
    kind.needs.forEach((name) =>
        need(name in e, `${kind.name} without ${name}`));

    need(!('nonce' in e && 'nonce16' in e), 'both nonces');
    need(!('scope' in e) || 'key' in e, 'scope without key');

    if ('ref' in e) {
        need(e.ref >= 1n && e.ref < e.seq, 'ref is not before the entry');
    }

    if ('posting' in e) {
        const [ first, n ] = e.posting;
        need(n >= 1n && n < 1n << 32n && first >= 1n && first <= e.seq
            && e.seq < first + n, 'it is not in its posting');
    }

    if (kind.name === 'Transfer' || kind.name === 'Hold') {
        need(e.account !== e.to, 'account and to are the same');
    }

    if (kind.name === 'Reverse') {
        need('account' in e || 'to' in e, 'a Reverse of nobody');
    }
}

// ---- receipts (section 3) --------------------------------------------------

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

export function txid(e) {
    let n = e.time_ms << 80n | BigInt(e.ledger) << 64n | e.seq;
    let text = '';

    for (let i = 0; i < 26; i++, n >>= 5n) {
        text = CROCKFORD[Number(n & 31n)] + text;
    }

    return 'tx_' + text;
}

export function parseTxid(text) {
    need(/^tx_[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(text), 'not a txid');
    const n = [ ...text.slice(3) ].reduce((sum, digit) =>
        sum << 5n | BigInt(CROCKFORD.indexOf(digit)), 0n);
    const id = {
        time_ms: n >> 80n, ledger: Number(n >> 64n & 0xffffn),
        seq: n & U64_MAX,
    };

    need(id.seq >= 1n, 'a txid of seq 0');
    return id;
}

export const timeText = (ms) => new Date(Number(ms)).toISOString();

// RFC 8785 for the flat objects that receipts are: JSON.stringify() escapes
// as it asks for, and numbers are safe integers.

export function canonicalJson(object) {
    const members = Object.keys(object).sort().map((name) =>
        JSON.stringify(name) + ':' + JSON.stringify(object[name]));

    return `{${members.join(',')}}`;
}

export function receiptOf(e) {
    const gives = e.kind === 'Mint' || e.kind === 'Credit';
    const receipt = { txid: txid(e), op: e.op };
    const from = gives ? undefined : e.account;
    const to = gives ? e.account : e.to;

    if (from !== undefined) { receipt.from = from; }
    if (to !== undefined) { receipt.to = to; }

    receipt.asset = e.asset;
    receipt.amount_minor = String(e.amount);

    if ('nonce' in e) { receipt.nonce = Number(e.nonce); }
    if ('nonce16' in e) { receipt.nonce = e.nonce16.toString('base64'); }
    if ('key' in e) { receipt.idem = utf8(e.key); }

    receipt.ts = timeText(e.time_ms);
    receipt.receipt_hash = receiptHash(receipt);
    receipt.seq = e.seq;

    return receipt;
}

export function receiptHash(receipt) {
    const { receipt_hash, seq, proof, ...hashed } = receipt;
    return 'b3:' + b3(Buffer.from(canonicalJson(hashed))).toString('hex');
}

const AMOUNT = /^[1-9][0-9]*$/;

const MEMBERS = {
    txid: (v) => parseTxid(v),
    op: (v) => KINDS.some((kind) => kind && kind.op === v),
    from: (v) => NAME.test(v) && v.length <= 256,
    to: (v) => NAME.test(v) && v.length <= 256,
    asset: (v) => NAME.test(v) && v.length <= 32,
    amount_minor: (v) => AMOUNT.test(v) && BigInt(v) < 1n << 128n,
    nonce: (v) => typeof v === 'number'
        ? Number.isSafeInteger(v) && v >= 1 : fromBase64(v).length === 16,
    idem: (v) => v.isWellFormed?.() !== false && v.length >= 1
        && Buffer.byteLength(v) <= 128,
    ts: (v) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(v)
        && Date.parse(v) >= 0 && timeText(Date.parse(v)) === v,
    receipt_hash: (v) => /^b3:[0-9a-f]{64}$/.test(v),
    seq: () => true,
    proof: () => true,
};

// The number of `seq` as it is written, which JSON.parse() would round.

export function parseReceipt(text) {
    const receipt = JSON.parse(text);
    const seq = [ ...text.matchAll(/"seq"\s*:\s*(\d+)/g) ].map((m) => m[1]);

    need(seq.length === 1, 'no seq');
    receipt.seq = BigInt(seq[0]);

    return receipt;
}

export function checkReceipt(receipt) {
    for (const [ name, value ] of Object.entries(receipt)) {
        need(Object.hasOwn(MEMBERS, name), `an unknown member ${name}`);
        need(name === 'seq' || name === 'proof' || name === 'nonce'
            || typeof value === 'string', `${name} is not a string`);
        need(MEMBERS[name](value) !== false, `${name} is malformed`);
    }

    for (const name of [ 'txid', 'op', 'asset', 'amount_minor', 'ts',
                         'receipt_hash', 'seq' ])
    {
        need(name in receipt, `no ${name}`);
    }

    const id = parseTxid(receipt.txid);
    need(id.seq === receipt.seq, 'txid has another seq');
    need(id.time_ms <= TIME_MAX && timeText(id.time_ms) === receipt.ts,
        'txid has another time');
    need(receiptHash(receipt) === receipt.receipt_hash,
        'receipt_hash is not that of the receipt');

    return id;
}

// ---- the tree (section 4) --------------------------------------------------

const LEAF = Buffer.from([ 0 ]);
const NODE = Buffer.from([ 1 ]);

export const leafHash = (H, bytes) => H(LEAF, bytes);
export const nodeHash = (H, left, right) => H(NODE, left, right);

export function rootOf(H, leaves) {
    if (leaves.length === 0) {
        return H();
    }

    let peaks = [];

    for (const leaf of leaves) {
        appendLeaf(H, peaks, leaf);
    }

    return foldPeaks(H, peaks);
}

// peaks[i] is the root of 2^i leaves, or undefined.

export function appendLeaf(H, peaks, leaf) {
    let i = 0;

    for (; peaks[i]; i++) {
        leaf = nodeHash(H, peaks[i], leaf);
        peaks[i] = undefined;
    }

    peaks[i] = leaf;
}

export function foldPeaks(H, peaks) {
    const there = peaks.filter(Boolean);
    return there.length === 0 ? H()
        : there.reduce((right, left) => nodeHash(H, left, right));
}

export function verifyInclusion(H, leaf, index, size, path, root) {
    need(index >= 0n && index < size, 'the leaf is not in the tree');
    need(path.length <= 64, 'the path is too long');

    let fn = index, sn = size - 1n, r = leaf;

    for (const p of path) {
        need(sn !== 0n, 'the path is too long');

        if (fn & 1n || fn === sn) {
            r = nodeHash(H, p, r);

            while (!(fn & 1n) && fn !== 0n) {
                fn >>= 1n;
                sn >>= 1n;
            }

        } else {
            r = nodeHash(H, r, p);
        }

        fn >>= 1n;
        sn >>= 1n;
    }

    need(sn === 0n, 'the path is too short');
    need(r.equals(root), 'the path leads to another root');
}

export function verifyConsistency(H, from, to, fromRoot, toRoot, path) {
    need(from <= to, 'the sizes are the wrong way round');
    need(path.length <= 64, 'the path is too long');

    if (from === 0n || from === to) {
        need(path.length === 0, 'there is nothing to prove');
        need(from !== 0n || fromRoot.equals(H()), 'not the empty root');
        need(from !== to || fromRoot.equals(toRoot), 'two roots of one size');
        return;
    }

    need(path.length > 0, 'the path is too short');

    let fn = from - 1n, sn = to - 1n;

    while (fn & 1n) {
        fn >>= 1n;
        sn >>= 1n;
    }

    const steps = from & from - 1n ? path : [ fromRoot, ...path ];
    let fr = steps[0], sr = steps[0];

    for (const c of steps.slice(1)) {
        need(sn !== 0n, 'the path is too long');

        if (fn & 1n || fn === sn) {
            fr = nodeHash(H, c, fr);
            sr = nodeHash(H, c, sr);

            while (!(fn & 1n) && fn !== 0n) {
                fn >>= 1n;
                sn >>= 1n;
            }

        } else {
            sr = nodeHash(H, sr, c);
        }

        fn >>= 1n;
        sn >>= 1n;
    }

    need(sn === 0n, 'the path is too short');
    need(fr.equals(fromRoot), 'it does not begin with the old root');
    need(sr.equals(toRoot), 'it does not lead to the new root');
}

// ---- signed notes (section 5) ----------------------------------------------

const SPKI = Buffer.from('302a300506032b6570032100', 'hex');

// White_Space of Unicode; \s has U+FEFF too, which is none.
const WHITE = /[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

function isName(name) {
    return name.length !== 0 && Buffer.byteLength(name) <= 128
        && !WHITE.test(name) && !/[\x00-\x1f+]/.test(name);
}

export function parseKey(text) {
    const match = /^([^+]+)\+([0-9a-f]{8})\+([^\n]+)\n?$/.exec(text);
    need(match && isName(match[1]), 'not a verifier key');

    const [ , name, id, data ] = match;
    const typed = fromBase64(data);
    need(typed.length === 33 && typed[0] === 1, 'not an Ed25519 key');

    const hash = sha256(Buffer.from(name + '\n'), typed);
    need(hash.subarray(0, 4).toString('hex') === id,
        'the id of the key is not its own');

    return {
        name, id: hash.subarray(0, 4),
        key: crypto.createPublicKey({
            key: Buffer.concat([ SPKI, typed.subarray(1) ]),
            format: 'der', type: 'spki',
        }),
    };
}

// The checkpoint of a note; with a key, one that this key has signed.

export function parseNote(bytes, key) {
    need(bytes.length <= 131072, 'a note has at most 131072 bytes');

    const note = utf8(bytes);
    need(!/[\x00-\x09\x0b-\x1f]/.test(note), 'a control character');

    const at = note.lastIndexOf('\n\n');
    need(at > 0 && note.length > at + 2 && note.endsWith('\n'),
        'no signature line');

    const text = note.slice(0, at + 1);
    const lines = note.slice(at + 2, -1).split('\n').map((line) => {
        const match = /^\u2014 ([^ ]+) ([^ ]+)$/.exec(line);
        need(match && isName(match[1]), 'a malformed signature line');
        const data = fromBase64(match[2]);
        need(data.length > 4, 'a signature that is too short');
        return { name: match[1], id: data.subarray(0, 4),
                 signature: data.subarray(4) };
    });

    if (key) {
        const line = lines.find((l) => l.name === key.name
            && l.id.equals(key.id));
        need(line, 'not signed by that key');
        need(line.signature.length === 64
            && crypto.verify(null, Buffer.from(text), key.key, line.signature),
            'the signature is not of this text');
    }

    return parseCheckpoint(text);
}

function parseCheckpoint(text) {
    const [ origin, size, root, ...extensions ] =
        text.slice(0, -1).split('\n');

    need(origin && size && root, 'a checkpoint has three lines');
    need(/^(?:0|[1-9][0-9]*)$/.test(size) && BigInt(size) <= U64_MAX,
        'not a size');
    need(extensions.length <= 8 && extensions.every(Boolean),
        'malformed extension lines');

    const hash = fromBase64(root);
    need(hash.length === 32, 'a root has 32 bytes');

    return { origin, size: BigInt(size), root: hash, extensions };
}

// ---- the journal (sections 6 to 8) -----------------------------------------

// Numbers of a row are anything that BigInt() takes, the rest is bytes.

export function rowChain(before, row) {
    return b3(before, u64(row.seq), u64(row.count), u64(row.epoch),
        u64(row.time_ms), row.prev_root, row.root, row.checkpoint,
        u64(row.body.length), u64(row.notes.length), row.body, row.notes);
}

export function bodyEntries(row) {
    const r = new Reader(row.body);
    const entries = [];

    while (r.left) {
        entries.push(r.text(1, 2048));
    }

    need(BigInt(entries.length) === BigInt(row.count),
        `${entries.length} entries where ${row.count} are said to be`);

    return entries;
}

export function decodeNotes(bytes) {
    const r = new Reader(bytes);
    const notes = [];

    const flag = (n) => {
        const value = n.u8();
        need(value <= 1, 'not a flag');
        return value === 1;
    };

    while (r.left) {
        const n = new Reader(r.text(48, 1 << 28));
        const note = {
            tag: n.take(16), digest: n.take(32), reason: n.u8(),
            detail: n.u8(), replayed: flag(n), value: n.varint(),
        };
        const count = n.varint();
        note.results = [];

        for (let i = 0n; i < count; i++) {
            note.results.push({
                reason: n.u8(), detail: n.u8(), repeat: flag(n),
                seq: n.varint(), value: n.varint(),
                bytes: n.text(0, 2048),
            });
        }

        n.end();
        notes.push(note);
    }

    return notes;
}

export function generationHash(slices) {
    return b3(...slices.flatMap((s) => [ u64(s.gen), u64(s.no), u64(s.last),
        u64(s.seq), u64(s.body.length), s.body ]));
}

const SLICE = {
    A: (r) => ({
        name: name(256)(r), nonce: r.varint(), version: r.varint(),
        day: r.varint(), daily: r.wide(),
        balances: Array.from({ length: Number(r.varint()) }, () => ({
            asset: r.varint(), available: r.wide(), held: r.wide(),
        })),
    }),
    H: (r) => {
        const seq = r.varint();
        return seq === 0n ? { seq } : {
            seq, expiry_ms: r.varint(), left: r.wide(), account: r.varint(),
            to: r.varint(), asset: r.varint(),
        };
    },
    R: (r) => ({ seq: r.varint(), total: r.wide() }),
    C: (r) => ({ name: r.text(1, 256), sum: r.wide() }),
};

export function decodeSlice(body) {
    const r = new Reader(body);
    const slice = {
        phase: String.fromCharCode(r.u8()), time_ms: r.varint(),
        first: r.varint(),
    };
    const n = r.varint();

    if (slice.phase === 'S') {
        need(n === 0n, 'records in S');
        slice.day = r.varint();
        slice.accounts = r.varint();
        slice.assets = Array.from({ length: Number(r.varint()) }, () => ({
            name: name(32)(r), minted: r.wide(), burned: r.wide(),
        }));

    } else {
        need(SLICE[slice.phase], 'no such phase');
        slice.records = [];

        for (let i = 0n; i < n; i++) {
            slice.records.push(SLICE[slice.phase](r));
        }
    }

    r.end();
    return slice;
}

export function pageText(page, kind) {
    need(page.length === 4096, 'a page has 4096 bytes');

    const r = new Reader(page);
    need(r.take(8).toString('latin1') === kind, `not a page of ${kind}`);
    const length = r.u32();
    const sum = r.take(16);
    need(length <= 4068, 'a text that is longer than its page');
    const text = r.take(length);

    need(b3(page.subarray(0, 12), text).subarray(0, 16).equals(sum),
        'the page is torn');
    need(r.take(r.left).every((byte) => byte === 0), 'bytes behind the text');

    return text;
}
