CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT,
  created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT);
INSERT INTO history VALUES ('h1', 'm1', NULL, 'Works at the bakery', 'ADD', '2025-01-05T08:00:00+00:00', NULL, 0, NULL, 'user');
INSERT INTO history VALUES ('h2', 'm1', 'Works at the bakery', 'Works at the ferry company', 'UPDATE', '2025-01-05T08:00:00+00:00', '2025-06-01T08:00:00+00:00', 0, NULL, 'user');
INSERT INTO history VALUES ('h3', 'm2', NULL, 'Has a cat called Moss', 'ADD', '2025-02-01T08:00:00+00:00', NULL, 0, NULL, 'user');
INSERT INTO history VALUES ('h4', 'm3', NULL, 'Rents a garage', 'ADD', '2025-02-02T08:00:00+00:00', NULL, 0, NULL, 'user');
INSERT INTO history VALUES ('h5', 'm3', 'Rents a garage', NULL, 'DELETE', '2025-02-02T08:00:00+00:00', '2025-07-01T08:00:00+00:00', 1, NULL, 'user');
