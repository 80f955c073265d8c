// SPDX-License-Identifier: MIT
// What the tests use of DuckDB's command line: duckdb.mjs DATABASE runs the SQL of stdin, and prints the rows of the
// last statement, an object a line. RTEV_DUCKDB is the folder that scripts/lib/unpack-duckdb made.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { DuckDBInstance } = createRequire(`${process.env.RTEV_DUCKDB}/`)("@duckdb/node-api");

const connection = await (await DuckDBInstance.create(process.argv[2], { threads: "2" })).connect();
const statements = await connection.extractStatements(readFileSync(0, "utf8"));
let reader;
for (let i = 0; i < statements.count; ++i) reader = await (await statements.prepare(i)).runAndReadAll();
for (const row of reader.getRowObjectsJson()) console.log(JSON.stringify(row));
