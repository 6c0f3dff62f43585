import { describe, expect, test } from 'bun:test'
import type { RunningView } from '../../../sandbox/contract.ts'
import { createRedactor } from '../../../security/redaction/redact.ts'
import type { SpawnPlan, SpawnResult } from '../../../tools/process.ts'
import { createJobs, type Jobs } from './jobs.ts'

type Fake = {
  readonly jobs: Jobs
  readonly plans: SpawnPlan[]
  prints(text: string): void
  /** Ends the command. */
  ends(code: number): void
}

function fake({ maxBackground = 2, jobOutputBytes = 4096, maxOutputBytes = 2_000, left = (): string[] => [] } = {}): Fake {
  const plans: SpawnPlan[] = []
  const over: ((ended: SpawnResult) => void)[] = []
  const view: RunningView = { follow: left, copy: async () => Promise.reject(new Error('what it wrote could not be copied: no')) }
  const redactor = createRedactor()
  redactor.register('hunter-two-secret', 'KEY')
  const jobs = createJobs({
    workspace: import.meta.dir,
    mode: async () => ({ confined: true, transaction: true }),
    momentMs: 50,
    shareNetwork: async () => undefined,
    log() {},
    redactor,
    shownBytes: () => maxOutputBytes,
    limits: { maxBackground, jobOutputBytes },
    spawn(plan) {
      plans.push(plan)
      plan.onView?.(view)
      const ended = Promise.withResolvers<SpawnResult>()
      over.push(ended.resolve)
      plan.signal.addEventListener('abort', () => ended.resolve({ ok: true, code: null, signal: 'SIGKILL', leftBehind: false }))
      return ended.promise
    },
  })
  return {
    jobs,
    plans,
    prints: (text) => plans.at(-1)?.onOutput(Buffer.from(text), 'stdout'),
    ends: (code) => over.at(-1)?.({ ok: true, code, leftBehind: false }),
  }
}

const start = ({ jobs }: Fake, command = 'serve', signal = new AbortController().signal) =>
  jobs.start({ argv: ['serve'], cwd: '/', env: {} }, { command, callId: 'call_1', signal })

describe('what it printed', () => {
  test('has no secret in it, also when it came in two pieces and was read between them', async () => {
    const at = fake()
    const begun = start(at)
    await Promise.resolve()
    await Bun.sleep(0)
    at.prints('key: hunter-two')
    expect((await begun).output).toBe('key: \n[job-1 runs in the background; since 5]')
    at.prints('-secret.\n')
    expect((await at.jobs.read('job-1', {})).output).toBe('[redacted:KEY].\n[job-1 runs in the background; since 21]')
    expect((await at.jobs.read('job-1', { since: 0 })).output).toStartWith('key: [redacted:KEY].\n')
    await at.jobs.endAll('test')
  })

  test('is read on exactly, in whole characters; what is no longer kept is counted', async () => {
    const at = fake({ maxOutputBytes: 1_000 })
    const begun = start(at)
    await Bun.sleep(0)
    at.prints('é'.repeat(3_000))
    const first = (await begun).output
    expect(first).toStartWith('[1,904 bytes before this are not kept]\né')
    let [read, since] = [first, /since (\d+)\]$/.exec(first)?.[1]]
    while (/bytes more/.test(read)) {
      read = (await at.jobs.read('job-1', {})).output
      expect(read).toStartWith('é')
      since = /since (\d+)\]$/.exec(read)?.[1]
    }
    expect(since).toBe('6000')
    expect((await at.jobs.read('job-1', { since: 5_999 })).output).toBe(
      '[1 bytes before this are not kept]\n[job-1 runs in the background; since 6000]',
    )
    await at.jobs.endAll('test')
  })

  test('ends a command that floods, and takes no more memory than is kept', async () => {
    const at = fake({ jobOutputBytes: 4_096 })
    const begun = start(at)
    await Bun.sleep(0)
    for (let piece = 0; piece < 70; piece++) at.prints('x\n'.repeat(500_000))
    expect(await begun).toMatchObject({ success: false, error: expect.stringContaining('stopped after printing more than 67108864 bytes') })
    expect((await at.jobs.read('job-1', { since: 0 })).output.length).toBeLessThan(5_000)
  })
})

describe('how it ends', () => {
  test('within the first moment it is reported like any command, and the next job has another number', async () => {
    const at = fake()
    const begun = start(at)
    await Bun.sleep(0)
    at.prints('port taken')
    at.ends(1)
    expect(await begun).toMatchObject({ success: false, error: 'exit code 1', output: 'port taken\n[job-1 ended: exit code 1; since 10]' })
    const second = start(at)
    await Bun.sleep(0)
    at.ends(0)
    expect(await second).toMatchObject({ success: true, metadata: { job: 'job-2', running: false, exitCode: 0 } })
    expect(at.jobs.list().map(({ id, state, end }) => [id, state, end])).toEqual([
      ['job-1', 'ended', 'exit code 1'],
      ['job-2', 'ended', 'exit code 0'],
    ])
  })

  test('with a cancelled call, and by a person, after whom the model still reads it', async () => {
    const at = fake()
    const cancelled = new AbortController()
    const begun = start(at, 'serve', cancelled.signal)
    await Bun.sleep(0)
    cancelled.abort()
    expect(await begun).toMatchObject({ success: false, error: 'ended by SIGKILL' })
    await start(at)
    expect([await at.jobs.end('job-2', 'the person'), await at.jobs.end('job-2', 'the person'), await at.jobs.end('job-7', 'x')]).toEqual([
      true,
      false,
      false,
    ])
    expect(await at.jobs.read('job-2', {})).toMatchObject({ success: true, output: '[job-2 ended: stopped (by the person); since 0]' })
  })

  test('changes that cannot be copied are an error, and it runs on', async () => {
    const at = fake()
    await start(at)
    expect(await at.jobs.read('job-1', { changes: true })).toMatchObject({ success: false, error: 'what it wrote could not be copied: no' })
    expect(at.jobs.list()[0]?.state).toBe('running')
    await at.jobs.endAll('test')
  })
})

test('a path that stays behind is named once', async () => {
  const at = fake({ left: () => ['own'] })
  await start(at)
  at.jobs.follow([{ path: 'own' }])
  at.jobs.follow([{ path: 'own' }])
  const { output } = await at.jobs.read('job-1', {})
  expect(output.match(/not updated/g)).toHaveLength(1)
  await at.jobs.endAll('test')
})
