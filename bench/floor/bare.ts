/** The floor: a streaming tool loop and nothing else. */

import { loop } from './loop.ts'

await loop(Bun.argv.slice(2), { keep() {}, seal() {} })
