// Verifies a receipt with its proof in a browser, without asking anybody:
// that the receipt is what its hash says, that it is the receipt of the entry,
// that the entry is in the tree, and that the ledger signed that tree.  From
// docs/FORMAT.md; it shares no code with the ledger.

import { blake3 } from '@noble/hashes/blake3';

const utf8 = (text) => new TextEncoder().encode(text);
const hex = (bytes) => Array.from(bytes, (b) =>
    b.toString(16).padStart(2, '0')).join('');
const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [],
    (two) => parseInt(two, 16));
const base64 = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

function need(condition, why) {
    if (!condition) {
        throw new Error(why);
    }
}

function join(...parts) {
    const all = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
    let at = 0;

    for (const p of parts) {
        all.set(p, at);
        at += p.length;
    }

    return all;
}

// ---- the receipt is what its hash says --------------------------------------

export function receiptHash(receipt) {
    const { receipt_hash, seq, proof, ...hashed } = receipt;
    const text = Object.keys(hashed).sort().map((name) =>
        JSON.stringify(name) + ':' + JSON.stringify(hashed[name])).join();

    return 'b3:' + hex(blake3(utf8(`{${text}}`)));
}

// ---- the entry (section 2), as a receipt ------------------------------------

const OPS = [ , 'issue', 'burn', 'transfer', 'debit', 'credit', 'hold',
              'capture', 'release', 'reverse' ];
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

export function receiptOf(bytes) {
    let at = 0;

    const take = (n) => {
        need(at + n <= bytes.length, 'the entry ends too early');
        at += n;
        return bytes.subarray(at - n, at);
    };
    const number = (n) => BigInt('0x' + hex(take(n)));
    const varint = () => {
        for (let value = 0n, shift = 0n; ; shift += 7n) {
            const byte = number(1);
            value |= (byte & 0x7fn) << shift;
            if (byte < 0x80n) {
                return value;
            }
        }
    };
    const text = () => new TextDecoder('utf-8', { fatal: true })
        .decode(take(Number(varint())));

    need(number(1) === 1n, 'another version of entries');

    const op = OPS[Number(number(1))];
    const ledger = number(2), seq = varint(), time = number(6);
    const fields = varint();
    const e = {};

    // in the order of their bits

    [
        [ 'asset', text ], [ 'account', text ], [ 'to', text ],
        [ 'amount', () => number(Number(number(1))) ],
        [ 'nonce', () => Number(varint()) ],
        [ 'nonce16', () => btoa(String.fromCharCode(...take(16))) ],
        [ 'id', text ], [ 'source', () => number(6) ], [ 'scope', text ],
        [ 'key', text ], [ 'ref', varint ],
        [ 'posting', () => [ varint(), varint() ] ],
        [ 'expiry', () => number(6) ], [ 'memo', () => take(32) ],
        [ 'cap', text ], [ 'capref', text ], [ 'schema', varint ],
        [ 'wallet', () => true ], [ 'expired', () => true ],
    ].forEach(([ name, read ], bit) => {
        if (fields >> BigInt(bit) & 1n) {
            e[name] = read();
        }
    });

    need(fields < 1n << 19n && at === bytes.length, 'more than an entry');

    let txid = '';
    let id = time << 80n | ledger << 64n | seq;

    for (let i = 0; i < 26; i++, id >>= 5n) {
        txid = CROCKFORD[Number(id & 31n)] + txid;
    }

    const gives = op === 'issue' || op === 'credit';
    const members = {
        txid: 'tx_' + txid, op,
        from: gives ? undefined : e.account, to: gives ? e.account : e.to,
        asset: e.asset, amount_minor: String(e.amount),
        nonce: e.nonce ?? e.nonce16, idem: e.key,
        ts: new Date(Number(time)).toISOString(),
    };
    const receipt = Object.fromEntries(Object.entries(members)
        .filter(([ , value ]) => value !== undefined));

    return { ...receipt, receipt_hash: receiptHash(receipt),
             seq: Number(seq) };
}

// ---- the tree (RFC 9162, with BLAKE3) ---------------------------------------

const leafHash = (bytes) => blake3(join(Uint8Array.of(0), bytes));
const nodeHash = (left, right) => blake3(join(Uint8Array.of(1), left, right));

export function rootFrom(leaf, index, size, path) {
    let fn = BigInt(index), sn = BigInt(size) - 1n, root = leaf;

    need(fn <= sn, 'the entry is not in a tree of that size');

    for (const p of path) {
        need(sn !== 0n, 'the path is too long');

        if (fn & 1n || fn === sn) {
            root = nodeHash(p, root);
            while (!(fn & 1n) && fn !== 0n) {
                fn >>= 1n;
                sn >>= 1n;
            }
        } else {
            root = nodeHash(root, p);
        }

        fn >>= 1n;
        sn >>= 1n;
    }

    need(sn === 0n, 'the path is too short');

    return root;
}

// ---- the signed head --------------------------------------------------------

// A verifier key: name+id+base64 of 1 and 32 bytes.
async function verifierKey(text) {
    const match = /^([^+\s]+)\+([0-9a-f]{8})\+([\w+\/=]+)$/.exec(text.trim());
    need(match, 'this is no public key of a ledger');

    const [ , name, id, data ] = match;
    const typed = base64(data);
    need(typed.length === 33 && typed[0] === 1, 'the key is not Ed25519');

    const hash = new Uint8Array(await crypto.subtle.digest('SHA-256',
        join(utf8(name + '\n'), typed)));
    need(hex(hash.subarray(0, 4)) === id, 'the id of the key is not its own');

    return { name, id, key: await crypto.subtle.importKey('raw',
        typed.subarray(1), { name: 'Ed25519' }, false, [ 'verify' ]) };
}

export async function signedHead(note, publicKey) {
    const key = await verifierKey(publicKey);
    const end = note.lastIndexOf('\n\n');
    need(end > 0, 'the checkpoint is not signed');

    const text = note.slice(0, end + 1);
    const signature = note.slice(end + 2).split('\n')
        .map((line) => /^\u2014 (\S+) (\S+)$/.exec(line))
        .filter((m) => m && m[1] === key.name)
        .map((m) => base64(m[2]))
        .find((data) => hex(data.subarray(0, 4)) === key.id);

    need(signature, 'the checkpoint is not signed by that key');
    need(await crypto.subtle.verify('Ed25519', key.key, signature.subarray(4),
                                    utf8(text)),
         'the signature is not of this checkpoint');

    const [ origin, size, root ] = text.split('\n');

    return { origin, size, root: base64(root) };
}

// ---- all of it --------------------------------------------------------------

// Calls step() with each sentence that holds; throws at the first that does
// not.
export async function verify(receipt, publicKey, step) {
    need(receiptHash(receipt) === receipt.receipt_hash,
         'the receipt is not what its hash says');
    step('the receipt is what its hash says');

    const p = receipt.proof;
    need(p, 'the receipt has no proof');

    const bytes = base64(p.entry);
    const { proof, ...said } = receipt;
    const own = receiptOf(bytes);
    need(Object.keys(own).length === Object.keys(said).length
         && Object.keys(own).every((name) => own[name] === said[name]),
         'the receipt is not that of the entry');
    step('it is the receipt of the entry');

    const leaf = leafHash(bytes);
    need(hex(leaf) === p.leaf, 'the leaf is not that of the entry');

    const root = rootFrom(leaf, receipt.seq - 1, p.size, p.path.map(unhex));
    need(p.checkpoint, 'no checkpoint vouches for it yet: ask again');

    const head = await signedHead(p.checkpoint, publicKey);
    step(`${head.origin} signed a tree of ${head.size}`);

    need(head.size === String(p.size) && hex(head.root) === hex(root),
         'the path leads to another root');
    step('and the entry is in it');
}
