/** Gathers what a runner says and how it ended, and decides what that means for the task. */

import { cut } from '../../../kit/text.ts'
import type { RunnerEvent } from '../../runners/runner.ts'

/** `stopped`: we ended it. `waiting` and `blocked`: the control plane has parked the task already. */
export type RunOutcome = {
  readonly ending: 'completed' | 'failed' | 'stopped' | 'waiting' | 'blocked'
  readonly output: string
  /** As the runner reports them: what the control plane metered is the floor. */
  readonly tokens: number
  readonly skill?: string
  readonly model?: string
  readonly exitCode?: number
  readonly confinement: string
  readonly receipts?: readonly string[]
  /** What a later run of the task can go on with. */
  readonly session?: string
}

const mostOutput = 200_000
/** As many as the control plane takes. */
const mostTokens = 1e9
const mostTail = 4_000

export type OutcomeCollector = {
  event(event: RunnerEvent): void
  /** The last output of the program, for its error message. */
  noise(text: string): void
  outcome(end: {
    readonly code: number
    readonly stopped: boolean
  }): Pick<RunOutcome, 'ending' | 'output' | 'tokens' | 'skill' | 'exitCode' | 'session'>
}

export function collectOutcome(runner: string): OutcomeCollector {
  const state: { tokens: number; result?: Extract<RunnerEvent, { type: 'result' }>; session?: string } = { tokens: 0 }
  const [texts, noise] = [createTail(mostOutput), createTail(mostTail)]
  return {
    event(event) {
      if (event.type === 'usage') state.tokens = Math.min(mostTokens, state.tokens + event.tokens)
      if (event.type === 'text') texts.push(`${event.text}\n`)
      if (event.type === 'result') state.result = event
      if (event.type === 'session') state.session = event.id
    },
    noise: noise.push,
    outcome({ code, stopped }) {
      const { tokens, result, session } = state
      const ok = code === 0 && result?.ok !== false
      const said = result?.output || texts.text().trim()
      const why = said || noise.text().trim()
      const how = code === 0 ? `${runner} reports that it failed` : `${runner} ended with exit code ${code}`
      const output = ok ? said : `${how}${why === '' ? '' : `: ${why}`}`
      return {
        ending: stopped ? 'stopped' : ok ? 'completed' : 'failed',
        output: cut(output.toWellFormed().replaceAll('\0', ''), mostOutput),
        tokens,
        exitCode: code,
        ...(result?.skill ? { skill: result.skill } : {}),
        session,
      }
    },
  }
}

/** Keeps the end of a text that arrives in pieces. It cuts only now and then: a flood of small pieces must not hold up the beats of the lease. */
function createTail(most: number) {
  const state = { pieces: [] as string[], length: 0 }
  const text = () => state.pieces.join('').slice(-most)
  return {
    text,
    push(piece: string): void {
      state.pieces.push(piece)
      state.length += piece.length
      if (state.length <= 2 * most) return
      state.pieces = [text()]
      state.length = most
    },
  }
}
