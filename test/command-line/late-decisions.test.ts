/** A change set that nobody could be asked about: applied later by a yes to exactly these changes, once, or dropped. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Memory } from '../../src/memory/memory.ts'
import { about, createFixture, type Fixture } from '../../src/workspace/changes/fixture.ts'
import { type Nest, nest } from '../support/cli.ts'
import { withSealedMemory } from '../support/record.ts'

let at: Nest
let kept: Fixture
beforeEach(async () => {
  at = nest()
  kept = await createFixture()
})
afterEach(async () => {
  at[Symbol.dispose]()
  await kept[Symbol.asyncDispose]()
})

const digest = 'd'.repeat(64)
const env = () => ({ BRAIDCLAW_HOME: kept.base, BRAIDCLAW_WORKSPACE_DIR: kept.root })
const run = (...args: readonly string[]) => at.run(args, { env: env(), cwd: kept.root })
const written = () => (existsSync(kept.at('a.txt')) ? readFileSync(kept.at('a.txt'), 'utf8') : undefined)

const records = <T>(use: (memory: Memory) => T): T => withSealedMemory(kept.base, use)

/** A command wrote a.txt, nobody could be asked, and its run is over. */
async function pending({ asked = true, shown = digest, expires = 600_000 } = {}): Promise<void> {
  const set = await kept.command((path) => writeFileSync(path('a.txt'), 'new\n'))
  const review = { digest: shown, verdict: 'ask', rule: 'r', reason: 'it asks', summary: 'new a.txt', count: 1 } as const
  await kept.store.hold(set.id, { ...set, about: { ...about, at: Date.now() }, review })
  if (!asked) return
  const judgement = {
    verdict: 'ask',
    risk: 'medium',
    rule: 'r',
    reason: 'it asks',
    plan: digest,
    summary: 'new a.txt',
    writes: [],
  } as const
  const identity = { runId: 'run_1', conversationId: 'con_1', turnId: 't', provider: 'p', model: 'm', channel: 'cli' }
  const call = { id: 'call_1', name: 'shell', input: { command: 'make' } }
  const gate = { type: 'gate.open', id: 'call_1', call, judgement, changes: review } as const
  records(({ approvals }) => approvals.create({ run: identity, gate, expires: Date.now() + expires }))
}

describe('nothing is applied', () => {
  test.each([
    ['when the question has expired', { expires: -1 }, 'expired'],
    ['when the kept changes are not those of the question', { shown: 'e'.repeat(64) }, 'are not those that the approval is for'],
  ])('%s', async (_, state, why) => {
    await pending(state)
    for (const command of [
      ['approvals', 'allow', 'run_1/call_1'],
      ['changes', 'apply', 'last', '--yes'],
    ]) {
      const { code, stderr } = await run(...command)
      expect([code, written()]).toEqual([1, undefined])
      if (command[0] === 'approvals') expect(stderr).toContain(why)
    }
  })

  test('when no receipt of it can be kept: the yes can be used when that is mended', async () => {
    await pending()
    const log = join(kept.base, 'tool_receipts.log')
    mkdirSync(log)
    for (const command of ['approvals allow run_1/call_1', 'changes apply last --yes']) {
      const { code, stderr } = await run(...command.split(' '))
      expect([code, written()]).toEqual([9, undefined])
      expect(stderr).toContain('no receipt of it could be kept')
    }
    rmSync(log, { recursive: true })
    expect(await run('changes', 'apply', 'last')).toMatchObject({ code: 0 })
    expect(written()).toBe('new\n')
  })

  test('after a no, which forgets the changes', async () => {
    await pending()
    expect(await run('approvals', 'deny', 'run_1/call_1')).toMatchObject({ code: 0, stdout: 'denied: new a.txt\n' })
    expect(await run('approvals', 'allow', 'run_1/call_1')).toMatchObject({ code: 1 })
    expect([written(), kept.store.list()]).toEqual([undefined, []])
  })

  test('without a yes: from a pipe, and at a terminal for every other answer', async () => {
    await pending({ asked: false })
    const { code, stderr } = await at.run(['changes', 'apply', 'last'], { env: env(), cwd: kept.root, through: ['setsid', '-w'] })
    expect([code, stderr, written()]).toEqual([4, 'error: nothing was applied; --yes applies it without asking\n', undefined])
    const no = await at.terminal(['changes', 'apply', 'last'], [['[y/N]', 'maybe\r']], { env: env(), cwd: kept.root })
    expect([no.code, written()]).toEqual([4, undefined])
    expect(no.stdout).toContain('+new')
  })

  test('when the file was made by somebody else meanwhile: the set, its question and the receipt all say that it waits', async () => {
    await pending()
    writeFileSync(kept.at('a.txt'), 'mine\n')
    const { code, stderr } = await run('approvals', 'allow', 'run_1/call_1')
    expect([code, written()]).toEqual([1, 'mine\n'])
    expect(stderr).toContain('allowed, but not applied: ')
    expect(stderr).toContain('"approvals allow changes:run_1/call_1" tries again')
    expect(kept.store.list()).toMatchObject([{ state: 'pending' }])
    expect((await run('approvals', 'list')).stdout).toStartWith('changes:run_1/call_1  open')
    expect(JSON.parse((await run('receipt', 'list', '--json')).stdout)).toMatchObject([
      { tool: 'changes.apply', status: 'failed', changes: 'pending' },
    ])
    rmSync(kept.at('a.txt'))
    expect(await run('approvals', 'allow', 'run_1/call_1')).toMatchObject({ code: 0, stdout: 'applied: 1 path: new a.txt\n' })
    expect([written(), (await run('receipt', 'verify', '--deep')).code]).toEqual(['new\n', 0])
  })
})

test('the question is shown with the difference, and a yes applies it once, with a receipt', async () => {
  await pending()
  expect((await run('approvals', 'show', 'run_1/call_1')).stdout).toContain('new a.txt (+1 −0)\n@@ -0,0 +1 @@\n+new\n')
  expect(JSON.parse((await run('approvals', 'show', 'run_1/call_1', '--json')).stdout)).toMatchObject({
    changes: 1,
    patch: expect.stringContaining('+new'),
  })
  expect(await run('approvals', 'allow', 'run_1/call_1')).toMatchObject({ code: 0, stdout: 'applied: 1 path: new a.txt\n' })
  expect(written()).toBe('new\n')
  expect(await run('approvals', 'allow', 'run_1/call_1')).toMatchObject({ code: 1 })
  expect((await run('receipt', 'list')).stdout).toContain('changes.apply')
  expect(await run('receipt', 'verify', '--deep')).toMatchObject({ code: 0 })
  expect((await run('undo')).code).toBe(0)
  expect(written()).toBeUndefined()
  expect((await run('receipt', 'list')).stdout).toContain('changes.undo')
})

test('a set that no run asked about is applied or dropped by name', async () => {
  await pending({ asked: false })
  expect(await run('changes', 'drop', 'last')).toMatchObject({ code: 0, stdout: 'dropped: run_1/call_1 (shell: make)\n' })
  await pending({ asked: false })
  const yes = await at.terminal(['changes', 'apply', 'run_1/call_1'], [['[y/N]', 'y\r']], { env: env(), cwd: kept.root })
  expect([yes.code, written()]).toEqual([0, 'new\n'])
  expect(await run('changes', 'apply', 'last', '--yes')).toMatchObject({ code: 1, stderr: expect.stringContaining('it is applied') })
})

test('a process that dies after the changes were applied and before their receipt: the next start writes it', async () => {
  await pending()
  const id = 'changes:run_1/call_1'
  records(({ approvals, pending }) => {
    approvals.decide({ id, allow: true, by: 'operator' })
    approvals.consume({ id, plan: digest })
    pending.put({ id, by: 'operator', owner: `${process.pid}@1-deadbeef` })
  })
  expect(await kept.store.apply({ id: kept.store.list()[0]?.id ?? '' })).toMatchObject({ ok: true })
  expect((await run('receipt', 'list')).stdout).not.toContain('changes.apply')
  expect((await run('agent', '-m', 'hello')).code).toBe(0)
  expect((await run('receipt', 'list')).stdout).toContain('changes.apply')
  expect(await run('receipt', 'verify', '--deep')).toMatchObject({ code: 0 })
})
