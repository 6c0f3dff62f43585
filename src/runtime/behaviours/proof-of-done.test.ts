import { describe, expect, test } from 'bun:test'
import { collect, type Script, type Stage, stage } from '../../../test/support/agent.ts'
import type { CheckFinding } from '../event.ts'

const limits = { requireProof: true } as const
const proved: Partial<CheckFinding> = { pass: true, evidence: '' }
const unproved: Partial<CheckFinding> = { pass: false, evidence: '- "all tests pass": the last run of `npm test` exited 1' }
const checks = (...findings: Partial<CheckFinding>[]) => ({ names: [], findings })

async function run(script: Script) {
  const staged = stage(script)
  await collect(staged.agent, 'go')
  return { ...staged, ending: staged.agent.ending() }
}

describe('an answer whose claims need proof', () => {
  test('is final when everything is proved', async () => {
    const { ending, checked, requests } = await run({ limits, replies: [{ text: 'all tests pass' }], checks: checks(proved) })
    expect([ending?.code, checked, requests.length]).toEqual(['answered', ['proof-1 proof of done'], 1])
  })

  test('is sent back once with the facts', async () => {
    const replies = [{ text: 'all tests pass' }, { calls: [{ id: 'a' }] }, { text: 'now they pass' }]
    const { ending, checked, requests, acted, log } = await run({ limits, replies, checks: checks(unproved, proved) })
    expect([ending?.code, acted, checked.length]).toEqual(['answered', ['a'], 2])
    expect(requests[1]?.messages.at(-1)).toMatchObject({ role: 'user', content: expect.stringContaining('`npm test` exited 1') })
    expect(log.filter((line) => /check|finish|retry/.test(line))).toEqual(['check.done', 'retry', 'check.done', 'finish answered'])
  })

  test('ends the run when the second one claims the same', async () => {
    const { ending, requests } = await run({ limits, replies: [{ text: 'all tests pass' }], checks: checks(unproved) })
    expect(requests.length).toBe(2)
    expect(ending).toEqual({ stop: 'error', code: 'checks_failed', message: `the answer claims what nothing proves: ${unproved.evidence}` })
  })

  test('is not checked without the setting, nor when the host cannot check does it count as proved', async () => {
    expect((await run({ replies: [{ text: 'all tests pass' }], checks: checks(unproved) })).checked).toEqual([])
    const { ending } = await run({ limits, replies: [{ text: 'all tests pass' }] })
    expect([ending?.code, ending?.message]).toEqual(['checks_failed', expect.stringContaining('no checks')])
  })

  test('a reply with calls is not an answer, and a refusal stays the ending', async () => {
    const replies = [{ calls: [{ id: 'a' }] }, { text: 'I could not do it' }]
    const { ending, checked } = await run({ limits, replies, verdicts: { a: { verdict: 'deny' } }, checks: checks(proved) })
    expect([ending?.code, checked]).toEqual(['denied', ['proof-1 proof of done']])
  })

  test('a cancel during the check ends the run as cancelled', async () => {
    const cancelling = async (): Promise<CheckFinding> => {
      staged.agent.cancel('ann')
      return { pass: false, evidence: 'late' }
    }
    const staged: Stage = stage({ limits, replies: [{ text: 'done' }], checks: { names: [], findings: [cancelling] } })
    await collect(staged.agent, 'go')
    expect([staged.agent.ending()?.code, staged.requests.length]).toEqual(['cancelled', 1])
  })

  test('the checks of a wiggum run decide instead', async () => {
    const staged = stage({ limits, replies: [{ text: 'done' }], checks: { names: ['one'], findings: [proved] } })
    expect(await staged.agent.setMode({ newMode: 'wiggum', maxIterations: 2 })).toBeUndefined()
    await collect(staged.agent, 'go')
    expect([staged.agent.ending()?.code, staged.checked]).toEqual(['answered', ['check-1 one']])
  })
})
