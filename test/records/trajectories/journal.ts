/** Writes a journal with runs of every kind for the tests of trajectories: checked, unchecked, continued, interrupted, running, hostile. */

import type { MemoryStage } from '../../../src/memory/fixture.ts'
import { acting, createMemoryStage, judgement, noon, recordSteps, refusing, runOf } from '../../../src/memory/fixture.ts'
import type { RecordWriterOptions } from '../../../src/memory/record-writer.ts'
import type { Call, Ending, ExternalEvent, FrozenCheck, Part } from '../../../src/runtime/event.ts'
import type { RunIdentity } from '../../../src/runtime/port.ts'
import { createRedactor } from '../../../src/security/redaction/redact.ts'

export const secret = 'swordfish-4711-swordfish'
export const hostile = 'bell \u0007 escape \u001b[31m nul \u0000 line \u2028 turned \u202e half \ud800 end'
export const check: FrozenCheck = { name: 'npm test', tier: 0, digest: 'c'.repeat(64) }

export const answered: Ending = { stop: 'end_turn', code: 'answered', message: 'done' }
export const limited: Ending = { stop: 'error', code: 'limit', message: 'the limit of 2 iterations is reached' }

/** What the runs of a journal are written with. */
export function createJournalWriter(stage: MemoryStage, options: Partial<RecordWriterOptions> = {}) {
  const record = recordSteps({ memory: stage.memory, log: () => {}, now: () => stage.clock.now++, redact: (each) => each, ...options })
  const spent = { inputTokens: 30, outputTokens: 7, cachedInputTokens: 10, costMicros: 1_250 }

  function begin(run: RunIdentity, prompt: string, own: Partial<Extract<ExternalEvent, { type: 'run.start' }>> = {}): void {
    record.external(run, { type: 'run.start', prompt, mode: 'structured', at: noon, model: run.model, ...own })
  }

  function beginChecked(run: RunIdentity, prompt: string, own: Partial<Extract<ExternalEvent, { type: 'run.start' }>> = {}): void {
    begin(run, prompt, { mode: 'wiggum', wiggum: { checks: [check], maxIterations: 2, maxSame: 2 }, ...own })
  }

  function reply(run: RunIdentity, parts: readonly Part[]): void {
    const calls = parts.flatMap((part) => (part.type === 'call' ? [part] : []))
    record.external(run, {
      ...{ type: 'model.done', parts, usage: spent, model: run.model },
      proposals: calls.map(({ type: _, ...call }) => ({ call, judgement })),
    })
  }

  function act(run: RunIdentity, call: Call, output: string, status: 'allowed' | 'failed' = 'allowed'): void {
    record.intent(run, acting(call))
    record.external(run, {
      type: 'tool.done',
      id: call.id,
      outcome: { status, output, ...(status === 'failed' ? { error: 'it broke' } : {}) },
    })
  }

  function checked(run: RunIdentity, number: number, pass: boolean, evidence = pass ? 'ok' : '1 test failed'): void {
    record.external(run, { type: 'check.done', id: `check-${number}`, pass, evidence, exit: pass ? 0 : 1, tree: 'd'.repeat(64), ms: 5 })
  }

  const retry = (run: RunIdentity, evidence: string) => void record.write(run, [{ kind: 'retry', retry: { type: 'retry', evidence } }])
  const end = (run: RunIdentity, ending: Ending) => record.finished(run, { type: 'finish', ending }, 'e'.repeat(64))
  return { ...record, begin, beginChecked, reply, act, checked, retry, end }
}

export type JournalWriter = ReturnType<typeof createJournalWriter>

export const shell = (id: string, command: string): Call => ({ id, name: 'shell', input: { command } })
export const said = (text: string): Part => ({ type: 'text', text })
const call = (each: Call): Part => ({ type: 'call', ...each })

/** One task that succeeds and fails, and runs of every other kind. @returns the redactor that knows the secret */
export function writeEveryKind(stage: MemoryStage) {
  const to = createJournalWriter(stage)
  success(to, runOf(1))
  failure(to, runOf(2))
  const plain = runOf(3, { conversationId: 'conversation-3' })
  to.begin(plain, 'Say hello')
  to.reply(plain, [said('Hello')])
  to.end(plain, answered)
  interrupted(to)
  to.begin(runOf(6), 'Still at work')
  to.reply(runOf(6), [call(shell('z', 'sleep 100'))])
  const failed = runOf(7)
  to.begin(failed, 'Nobody answers')
  to.external(failed, { type: 'model.fail', code: 'auth', message: 'no key' })
  to.end(failed, { stop: 'error', code: 'provider', message: 'no key' })
  const direct = runOf(9, { provider: 'operator' })
  to.begin(direct, 'check npm test')
  to.reply(direct, [said('no model says this')])
  to.end(direct, answered)
  const half = runOf(8)
  to.beginChecked(half, 'Half of it')
  to.reply(half, [said('I begin'), call(shell('a', 'make')), call(shell('b', 'make test'))])
  to.act(half, shell('a', 'make'), 'made')
  to.end(half, { stop: 'cancelled', code: 'cancelled', message: 'cancelled' })
  const redactor = createRedactor()
  redactor.register(secret, 'API_KEY')
  return redactor
}

/** Two iterations; a call that is refused, one that fails, one with arguments that are no JSON; hostile text and a secret in what came back. */
function success(to: JournalWriter, run: RunIdentity): void {
  to.beginChecked(run, 'Mend the sum')
  const [look, bad] = [shell('a', 'npm test'), { ...shell('b', ''), input: {}, malformed: '{"command": rm' }]
  to.reply(run, [{ type: 'thinking', text: 'Look first' }, said('I look'), call(look), call(bad)])
  to.act(run, look, hostile)
  to.denied(run, refusing(bad))
  to.reply(run, [said('It is done')])
  to.checked(run, 1, false)
  to.retry(run, 'The check "npm test" failed:\n1 test failed')
  const [mend, print] = [shell('c', 'sed -i s/-/+/ sum.js'), { id: 'd', name: 'file_read', input: { path: 'keys' } }]
  to.reply(run, [call(mend), call(print)])
  to.act(run, mend, '', 'failed')
  to.act(run, print, `key=${secret}, again ${secret}`)
  to.reply(run, [said('Now it is')])
  to.checked(run, 2, true)
  to.end(run, answered)
}

function failure(to: JournalWriter, run: RunIdentity): void {
  to.beginChecked(run, 'Mend the sum')
  for (const number of [1, 2]) {
    to.reply(run, [said('All tests pass')])
    to.checked(run, number, false)
    if (number === 1) to.retry(run, 'The check "npm test" failed:\n1 test failed')
  }
  to.end(run, limited)
}

/** A run that died in a call, and the run that went on with it. */
function interrupted(to: JournalWriter): void {
  const [died, next] = [runOf(4), runOf(5)]
  const lost = shell('a', 'make')
  to.beginChecked(died, 'Build it')
  to.reply(died, [call(lost)])
  to.end(died, { stop: 'error', code: 'error', message: 'the process of the run ended' })
  const wiggum = { checks: [check], maxIterations: 2, maxSame: 2 }
  const came = { limits: wiggum, passed: 0, tree: null, iteration: 1, stage: 'working' as const, evidence: '', same: { key: '', times: 0 } }
  const continues = { run: died.runId, asked: 'Build it', proposals: [{ call: lost, judgement }], wiggum: came }
  to.beginChecked(next, '', { continues })
  to.act(next, lost, 'built')
  to.reply(next, [said('Built')])
  to.checked(next, 1, true)
  to.end(next, answered)
}

export { createMemoryStage, runOf }
