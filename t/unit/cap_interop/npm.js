// The npm package "macaroon" for a script: `node npm.js <package directory>`
// reads one command a line, its words separated by tabs, and answers each by
// one line.  Tokens are version 2 in base64url; a key is hexadecimal.
//
//     mint <key> <identifier> <location> <caveat>...     the token
//     attenuate <token> <caveat>...                      the token
//     verify <key> <token> <caveat>...                   "ok" or "refused"

'use strict';

const macaroon = require(process.argv[2]);
const lines = require('fs').readFileSync(0, 'utf8').split('\n').slice(0, -1);

// Release 3.0.4 doubles its output buffer with each thing that it appends, so
// a token with more than two or three caveats asks for gigabytes.  Those are
// taken from its JSON form and framed here.

const smallCaveats = 1;

function field(type, bytes) {
    const length = [];
    let n = bytes.length;

    for (; n >= 128; n >>= 7) {
        length.push(n & 127 | 128);
    }

    return Buffer.concat([Buffer.from([type, ...length, n]), bytes]);
}

function frame(json) {
    const end = Buffer.from([0]);
    const parts = [Buffer.from([2])];

    if (json.l) {
        parts.push(field(1, Buffer.from(json.l)));
    }

    parts.push(field(2, Buffer.from(json.i)), end);

    for (const caveat of json.c || []) {
        parts.push(field(2, Buffer.from(caveat.i)), end);
    }

    return Buffer.concat([...parts, end,
                          field(6, Buffer.from(json.s64, 'base64url'))]);
}

function finish(m, caveats) {
    for (const caveat of caveats) {
        m.addFirstPartyCaveat(caveat);
    }

    const binary = m.caveats.length <= smallCaveats
        ? Buffer.from(m.exportBinary()) : frame(m.exportJSON());

    return binary.toString('base64url');
}

function load(token) {
    return macaroon.importMacaroon(
        new Uint8Array(Buffer.from(token, 'base64url')));
}

const commands = {
    mint(key, identifier, location, ...caveats) {
        return finish(macaroon.newMacaroon({
            version: 2,
            rootKey: new Uint8Array(Buffer.from(key, 'hex')),
            identifier,
            location,
        }), caveats);
    },

    attenuate(token, ...caveats) {
        return finish(load(token), caveats);
    },

    verify(key, token, ...caveats) {
        load(token).verify(new Uint8Array(Buffer.from(key, 'hex')),
            (caveat) => caveats.includes(caveat) ? null : 'not expected', []);
        return 'ok';
    },
};

for (const line of lines) {
    const [command, ...words] = line.split('\t');
    let answer;

    try {
        answer = commands[command](...words);
    } catch (e) {
        answer = command === 'verify' ? 'refused' : `failed: ${e.message}`;
    }

    process.stdout.write(answer + '\n');
}
