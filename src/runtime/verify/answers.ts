/** Checks P15, a property of possibility: some run answers after more than one round of calls. */

import { createEngine } from '../../kernel/engine.ts'
import type { Property } from '../../kernel/property.ts'
import type { Selection } from '../../kernel/select.ts'
import type { AnyThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'
import { read } from './scenes.ts'
import { createWorld, memory, type Seen } from './world.ts'

export const P15 = 'Some run answers after more than one round of calls.'

const ROUNDS = 2

/** Never breaks by itself. It calls `onAnswer` for each run that answers after more than one round; the search must see at least one. */
export function answersLate(onAnswer: () => void): Property<RunEvent, { readonly rounds: number; readonly answered: boolean }> {
  return {
    name: P15,
    init: { rounds: 0, answered: false },
    next(progress, { event }) {
      if (event.type === 'observe') return { ...progress, rounds: Math.min(progress.rounds + 1, ROUNDS) }
      if (event.type !== 'finish' || event.ending.code !== 'answered') return progress
      if (progress.rounds >= ROUNDS) onAnswer()
      return { ...progress, answered: true }
    },
  }
}

/** `refused` holds the external events that the program rejected. */
export type Attempt = { readonly answered: boolean; readonly trace: readonly Selection<RunEvent>[]; readonly refused: readonly RunEvent[] }

/** Runs the simplest such run, in a world that cooperates. If it ends without an answer, its trace shows what prevents one. */
export function attemptAnswer(threads: readonly AnyThread<RunEvent>[]): Attempt {
  const world = createWorld({ replies: [[], [read]], tokens: 0, outcomes: ['allowed'] })
  const engine = createEngine<RunEvent>({ threads })
  const trace: Selection<RunEvent>[] = [...engine.superstep().selected]
  for (;;) {
    const seen = trace.reduce(memory.next, memory.init)
    const event = helpful(world(seen), seen, trace.length === 0)
    if (event === undefined) break
    engine.send(event)
    const { selected, rejected } = engine.superstep()
    trace.push(...selected)
    if (rejected.length > 0) return { answered: false, trace, refused: rejected.map(({ event }) => event) }
  }
  const last = trace.at(-1)?.event
  return { answered: last?.type === 'finish' && last.ending.code === 'answered', trace, refused: [] }
}

/** Returns a start, a reply with one call in each of the first rounds and without a call after that, and the true result of each call. */
function helpful(offers: readonly RunEvent[], { thinking, round, judging, calls }: Seen, isNew: boolean): RunEvent | undefined {
  if (isNew) return offers.find(({ type }) => type === 'run.start')
  if (thinking) return offers.find((event) => event.type === 'model.done' && (event.proposals.length === 0) === round > ROUNDS)
  if (judging) return offers.find((event) => event.type === 'judged' && event.id === judging.call.id)
  const acting = calls.find(({ phase }) => phase === 'acting')
  return acting && offers.find((event) => event.type === 'tool.done' && event.id === acting.id)
}
