// @sluice/records: the system of record in PostgreSQL: drives, nodes, uploads, outbox.
export {};
