/** Search over 100,000 messages: rare, mid and common terms, and a question of six common words. Median of 25, in ms. `--json` too. */

import { createMemoryStage, noon, runOf, searchIn, started } from '../src/memory/fixture.ts'

const messages = 100_000
const common = ['the', 'what', 'file', 'with', 'this', 'have']

/** Zipf-like words from a fixed sequence, so that every run measures the same text. */
function* texts(): Generator<string> {
  let state = 1
  const random = () => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return state / 0x7fffffff
  }
  const word = () => (random() < 0.3 ? common[Math.floor(random() * 6)] : `w${Math.floor(20_000 ** random())}`)
  for (let number = 1; number <= messages; number += 1) {
    const marks = [number % 100 === 0 ? 'midterm' : '', number === 777 || number === 50_000 ? 'aardvark' : '']
    yield [...Array.from({ length: 30 }, word), ...marks].join(' ')
  }
}

function median(body: () => unknown): number {
  const times = Array.from({ length: 25 }, () => {
    const begin = performance.now()
    body()
    return performance.now() - begin
  })
  return Math.round((times.toSorted((a, b) => a - b)[12] ?? 0) * 1000) / 1000
}

const memoryStage = createMemoryStage()
try {
  const begin = performance.now()
  memoryStage.memory.transaction(() => {
    let number = 0
    for (const text of texts()) {
      number += 1
      const run = runOf(number, { conversationId: `conversation-${Math.floor(number / 20)}` })
      memoryStage.memory.journal.append({
        run,
        kind: 'external',
        type: 'run.start',
        at: noon - (messages - number) * 1000,
        body: started(text),
      })
    }
  })
  const filled = performance.now() - begin
  const search = (query: string) => median(() => searchIn(memoryStage)({ query }))
  const result = {
    messages,
    fill_ms: Math.round(filled),
    rare_ms: search('aardvark'),
    mid_ms: search('midterm'),
    common_ms: search('the'),
    six_common_ms: search(common.join(' ')),
    common_and_rare_ms: search('what is in the aardvark file'),
    absent_ms: search('zebra'),
    substring_ms: search('ardvar'),
  }
  if (process.argv.includes('--json')) console.log(JSON.stringify(result))
  else for (const [name, value] of Object.entries(result)) console.log(`${name.padEnd(20)} ${value}`)
} finally {
  memoryStage.remove()
}
