import { expect, test } from 'bun:test'
import { runTurn, type StepTurn, type StepTurns } from './run-step.ts'

/** A step whose turn a dead process ended, after an answer that an earlier turn had asked for. */
function ended(answered: string, runs: readonly { readonly runId: string; readonly code: string }[]) {
  const begun: string[] = []
  const conversation = {
    id: 'conversation_1',
    interrupted: async () => 'its last turn was answered',
    unanswered: () => [],
    cancel() {},
    close: async () => {},
  }
  const call = { type: 'call', outcome: { status: 'allowed', output: 'written' } }
  const turns = {
    host: { conversation: async () => conversation },
    records: { runs: { list: () => ({ runs }), show: async () => ({ steps: [call] }) } },
    takeTurn: async ({ prompt }: { prompt: string }) => {
      begun.push(prompt)
      return { code: 'answered', message: '', stop: 'end_turn' }
    },
    onGate: () => async () => {},
  }
  const question = { id: 'q', runId: answered, state: 'used', changes: 0, isOver: true }
  const turn = { name: 'n', setup: { config: { tools: { dir: '/nowhere' } } }, work: { tool: 'file_write', input: {} }, question }
  // The parts of a host that the step uses.
  const run = () => runTurn({ ...turn, signal: new AbortController().signal } as unknown as StepTurn, turns as unknown as StepTurns)
  return { run, begun }
}

test('an answer that a later turn has used does not let the call run again', async () => {
  const { run, begun } = ended('run_1', [
    { runId: 'run_2', code: 'answered' },
    { runId: 'run_1', code: 'approval_needed' },
  ])
  expect([await run(), begun]).toMatchObject([{ state: 'done', output: 'written' }, []])
})

test('an answer to the latest turn lets the call run', async () => {
  const { run, begun } = ended('run_1', [{ runId: 'run_1', code: 'approval_needed' }])
  expect([await run(), begun]).toMatchObject([{ state: 'done' }, ['procedure: file_write']])
})
