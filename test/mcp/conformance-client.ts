/** Plays a client for the official conformance program, which passes the address of its server as the last argument. */

import { never, stage } from './connecting.ts'

await using at = stage()
const connection = await at.connect({ kind: 'http', url: process.argv.at(-1) ?? '', headers: {} })
const list = await connection.tools(never())
if ('why' in list) throw new Error(list.why)
const elicit = async () => ({ action: 'accept' as const, content: {} })
for (const { name } of list.items) await connection.callTool(name, { a: 5, b: 3 }, { signal: never(), elicit })
await connection.close()
