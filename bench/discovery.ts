/** Discovery over 10,000 items: adding them, the first search, which builds the index, and 200 further ones. `--json` too. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createHybridIndex } from '../src/discovery/hybrid-index.ts'

const items = 10_000
const rows = <Row>(name: string): Row[] =>
  readFileSync(join(import.meta.dir, '../test/fixtures/discovery', name), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

function timed(body: () => unknown): number {
  const begin = performance.now()
  body()
  return Math.round((performance.now() - begin) * 100) / 100
}

const tools = rows<{ readonly name: string; readonly description: string }>('metatool-tools.jsonl')
const tool = (at: number) => tools[at % tools.length] ?? { name: '', description: '' }
const index = createHybridIndex()
const put_ms = timed(() =>
  index.put(
    Array.from({ length: items }, (_, at) => {
      const description = `${tool(at).description} ${tool(at * 7).description}`.slice(0, 200)
      return { kind: 'tool', source: 'bench', name: `${tool(at).name}_${at}`, description }
    }),
  ),
)
const build_ms = timed(() => index.search('warm'))
const times = rows<{ readonly query: string }>('metatool-single.jsonl')
  .slice(0, 200)
  .map(({ query }) => timed(() => index.search(query)))
  .sort((a, b) => a - b)
const result = { items, put_ms, build_ms, median_ms: times[100], p95_ms: times[190] }

if (Bun.argv.includes('--json')) console.log(JSON.stringify(result))
else console.table(result)
