-- A peer: PostgreSQL, one stored procedure a transfer, no HTTP.  Same
-- semantics: idempotency, two balances that never go below zero, history.
-- The unique key of history is the idempotency table.

CREATE TABLE account (
    id       integer PRIMARY KEY,
    balance  numeric(39) NOT NULL CHECK (balance >= 0)
) WITH (fillfactor = 50);

CREATE TABLE history (
    seq     bigint GENERATED ALWAYS AS IDENTITY,
    key     bigint PRIMARY KEY,
    payer   integer NOT NULL,
    payee   integer NOT NULL,
    amount  numeric(39) NOT NULL,
    at      timestamptz NOT NULL DEFAULT now()
);

CREATE FUNCTION transfer(p_key bigint, p_from integer, p_to integer,
    p_amount numeric) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    result  bigint;
BEGIN
    INSERT INTO history (key, payer, payee, amount)
        VALUES (p_key, p_from, p_to, p_amount)
        ON CONFLICT (key) DO NOTHING RETURNING seq INTO result;

    IF result IS NULL THEN
        SELECT seq INTO result FROM history WHERE key = p_key;
        RETURN result;
    END IF;

    -- the lower one first: two transfers never wait for each other in a ring

    IF p_from < p_to THEN
        UPDATE account SET balance = balance - p_amount WHERE id = p_from;
        UPDATE account SET balance = balance + p_amount WHERE id = p_to;
    ELSE
        UPDATE account SET balance = balance + p_amount WHERE id = p_to;
        UPDATE account SET balance = balance - p_amount WHERE id = p_from;
    END IF;

    RETURN result;
END $$;

INSERT INTO account SELECT i, 1000000000000 FROM generate_series(1, 10000) i;
