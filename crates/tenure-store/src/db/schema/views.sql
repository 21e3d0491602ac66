-- For people: readable times, no checksums.

CREATE VIEW v_runs AS
SELECT r.id, r.kind, r.name, r.status, r.outcome, r.lives,
       strftime('%Y-%m-%d %H:%M:%f', r.started / 1000.0, 'unixepoch') AS started,
       strftime('%Y-%m-%d %H:%M:%f', r.ended / 1000.0, 'unixepoch') AS ended,
       (SELECT max(e.seq) FROM events e WHERE e.run = r.id) AS events,
       r.thread, r.user, r.error, r.input, r.output
FROM runs r ORDER BY r.started DESC;

CREATE VIEW v_steps AS
SELECT run, seq, strftime('%H:%M:%f', time / 1000.0, 'unixepoch') AS time,
       path, kind, name, ordinal, agent, input, length(data) AS size, data
FROM events WHERE type = 'step.recorded' ORDER BY run, seq;

CREATE VIEW v_timeline AS
SELECT run, seq, strftime('%Y-%m-%d %H:%M:%f', time / 1000.0, 'unixepoch') AS time,
       type, agent, path, kind, name, substr(data, 1, 120) AS data
FROM events ORDER BY run, seq;
