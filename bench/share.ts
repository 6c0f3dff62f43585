/** The kernel's share of a turn: building the program and deciding every event of it, in a process that has never done so. Prints JSON. */

import { createEngine } from '../src/kernel/engine.ts'
import type { ExternalEvent, Judgement, Proposal, RunEvent } from '../src/runtime/event.ts'
import { program } from '../src/runtime/program.ts'

const judgement: Judgement = {
  verdict: 'allow',
  risk: 'low',
  rule: 'autonomy.full',
  reason: 'reads a file inside the workspace',
  plan: '0'.repeat(64),
  summary: 'file_read: read /workspace/notes.txt',
  writes: [],
}

/** Everything that comes from outside in a turn with so many rounds of one tool call each. */
function* turn(rounds: number): Generator<ExternalEvent> {
  yield { type: 'run.start', prompt: 'What is in the notes?', mode: 'structured', at: 0, model: 'bench' }
  for (let round = 1; round <= rounds; round += 1) {
    const id = `call_${round}`
    yield replied([{ call: { id, name: 'file_read', input: { path: 'notes.txt' } }, judgement }])
    yield { type: 'tool.done', id, outcome: { status: 'allowed', output: 'Buy milk.' } }
  }
  yield replied([])
}

function replied(proposals: readonly Proposal[]): ExternalEvent {
  return {
    type: 'model.done',
    parts: [{ type: 'text', text: 'Hello' }],
    proposals,
    usage: { inputTokens: 100, outputTokens: 5 },
    model: 'bench',
  }
}

/** @returns milliseconds, and how many events were selected. */
function share(rounds: number): { readonly ms: number; readonly events: number } {
  const outside = [...turn(rounds)]
  let events = 0
  const begin = performance.now()
  const engine = createEngine<RunEvent>({ threads: program({ maxToolRounds: 30, maxParallel: 4 }) })
  for (const event of outside) {
    engine.send(event)
    engine.superstep(() => {
      events += 1
    })
  }
  return { ms: performance.now() - begin, events }
}

const rounds = Number(process.argv[2] ?? 0)
const cold = share(rounds)
const warm = Array.from({ length: 200 }, () => share(rounds).ms).toSorted((a, b) => a - b)[100]
console.log(JSON.stringify({ rounds, events: cold.events, coldMs: cold.ms, warmMs: warm }))
