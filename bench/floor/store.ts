/** The store floor: the same loop with every message committed to SQLite and a fsynced, hash-chained receipt for every tool call. */

import { loop } from './loop.ts'
import { openStore } from './open-store.ts'

const store = openStore(Bun.env.BENCH_STORE ?? '.')
await loop(Bun.argv.slice(2), store)
store.close()
