import { describe, expect, test } from 'bun:test'
import { tokensOf } from '../kit/content/tokens.ts'
import { canonical, type JsonObject } from '../kit/json.ts'
import { sha256 } from '../kit/sha256.ts'
import type { Tool } from '../runtime/port.ts'
import { act, tool } from './fixture.ts'
import { createExecutor, type ExecutorOptions } from './run-tool.ts'
import { recordSandbox } from './tool-kind.ts'

const live = () => new AbortController().signal

const execute = (invoke: Tool['invoke'], changes: Partial<ExecutorOptions> = {}, signal = live()) =>
  createExecutor({
    tools: [tool(invoke)],
    log() {},
    room: () => ({ bytes: 1_000, tokens: 1_000, wholeBytes: 1_000_000 }),
    redact: (text) => text,
    ...changes,
  })(act('t'), signal)

describe('what goes wrong', () => {
  test('an unknown tool is named beside those there are', async () => {
    const run = createExecutor({
      tools: [tool(async () => ({ success: true, output: '' }))],
      log() {},
      room: () => ({ bytes: 9, tokens: 9, wholeBytes: 1_000_000 }),
      redact: String,
    })
    expect(await run(act('nope'), live())).toEqual({ status: 'failed', output: '', error: 'the tool "nope" does not exist; there are t' })
  })

  test('a refusal at execution time is denied, with its rule', async () => {
    const refuse = async () => ({ success: false, output: '', error: 'it leads out', deniedBy: 'workspace_only' })
    expect(await execute(refuse)).toEqual({ status: 'denied', output: '', error: 'it leads out (rule workspace_only)' })
    const sly = async () => ({ success: true, output: 'done', deniedBy: 'r' })
    expect(await execute(sly)).toMatchObject({ status: 'denied' })
  })

  test('a throw, a rejection and a failure without a reason are failures', async () => {
    const thrown = () => {
      throw new Error('boom')
    }
    expect(await execute(thrown)).toMatchObject({ status: 'failed', error: 'the tool broke: boom' })
    expect(await execute(() => Promise.reject('odd'))).toMatchObject({ status: 'failed', error: 'the tool broke: odd' })
    expect(await execute(async () => ({ success: false, output: 'x' }))).toMatchObject({
      status: 'failed',
      output: 'x',
      error: expect.any(String),
    })
  })

  test('a tool that ignores its signal for ever is given up', async () => {
    const deaf = () => new Promise<never>(() => {})
    const outcome = await execute(deaf, { timeouts: { t: { ms: 20, advice: 'raise it' } } })
    expect(outcome).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(/^timed out after 0\.02 s \(raise it\); .* is unknown$/),
    })
  })

  test('a tool that fails late after it was given up disturbs nobody', async () => {
    const late = Promise.withResolvers<never>()
    const events: string[] = []
    await execute(() => late.promise, { timeouts: { t: { ms: 10, advice: 'raise it' } }, log: (_level, event) => events.push(event) })
    late.reject(new Error('late'))
    await Bun.sleep(1)
    expect(events).toEqual(['tool started', 'tool ended late'])
  })

  test('a timeout keeps what the tool hands over, and says so first', async () => {
    const obedient: Tool['invoke'] = (_input, { signal }) =>
      new Promise((resolve) =>
        signal.addEventListener('abort', () => resolve({ success: false, output: 'half', error: 'ended by SIGTERM' })),
      )
    expect(await execute(obedient, { timeouts: { t: { ms: 10, advice: 'raise it' } } })).toMatchObject({
      output: 'half',
      error: 'timed out after 0.01 s (raise it); ended by SIGTERM',
    })
    const controller = new AbortController()
    const running = execute(obedient, {}, controller.signal)
    controller.abort()
    expect(await running).toMatchObject({ status: 'failed', error: 'cancelled; ended by SIGTERM' })
  })

  test('nothing starts after a cancel', async () => {
    let started = false
    const run = async () => {
      started = true
      return { success: true, output: '' }
    }
    expect(await execute(run, {}, AbortSignal.abort())).toMatchObject({ status: 'failed', error: 'cancelled before it started' })
    expect(started).toBe(false)
  })
})

describe('what comes out', () => {
  test('work that was finished although the time was over is told as done', async () => {
    const sturdy: Tool['invoke'] = (_input, { signal }) =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve({ success: true, output: 'written' })))
    expect(await execute(sturdy, { timeouts: { t: { ms: 10, advice: 'raise it' } } })).toEqual({ status: 'allowed', output: 'written' })
  })

  test('output is capped, and secrets are gone before it is cut', async () => {
    const output = `${'a'.repeat(455)}s3cret${'b'.repeat(5_000)}`
    const outcome = await execute(async () => ({ success: true, output }), { redact: (text) => text.replaceAll('s3cret', '***') })
    expect(outcome.output).toMatch(/\[… [\d,]+ of 5,458 bytes omitted …\]/)
    expect(outcome.output).not.toContain('s3')
    expect(Buffer.byteLength(outcome.output)).toBeLessThanOrEqual(1_000)
  })

  test('errors and metadata are redacted and bounded too', async () => {
    const redact = (text: string) => text.replaceAll('s3cret', '***')
    const result = {
      success: false,
      output: '',
      error: `s3cret ${'x'.repeat(9_000)}`,
      metadata: { s3cret: ['s3cret', { a: 's3cret' }], n: 1, z: null },
    }
    const outcome = await execute(async () => result, { redact })
    expect(JSON.stringify(outcome)).not.toContain('s3cret')
    expect(Buffer.byteLength(outcome.error ?? '')).toBeLessThanOrEqual(4_096)
    expect(outcome.metadata).toEqual({ '***': ['***', { a: '***' }], n: 1, z: null })
    const large = await execute(async () => ({ success: true, output: '', metadata: { x: 'x'.repeat(20_000) } }))
    expect(large.metadata).toEqual({ omitted: 'metadata of 20008 characters, at most 16384 are kept' })
  })

  test('whatever text a tool makes, the outcome has a canonical form', async () => {
    const outcome = await execute(async () => ({ success: false, output: 'a\ud800b\0', error: '\udc00', metadata: { '\ud800': '\ud800' } }))
    expect(() => canonical(outcome)).not.toThrow()
    expect(outcome.output).toBe('a\ufffdb␀')
  })

  test('a tool cannot say what confined it, nor which receipt it has', async () => {
    const lie = { success: true, output: '', metadata: { sandbox: 'bubblewrap', n: 1 }, receiptId: 'rcpt_of_another' }
    expect(await execute(async () => lie)).toEqual({ status: 'allowed', output: '', metadata: { n: 1 } })
    const sly = { ...lie, metadata: JSON.parse('{"sandbox":"none","confinedBy":"landlock","__proto__":{"sandbox":"landlock"}}') }
    expect((await execute(async () => sly)).metadata?.sandbox).toBeUndefined()
    expect((await execute(() => Promise.reject(lie))).metadata).toBeUndefined()
  })

  test('what really confined its children is told whatever the tool says, also when it says too much or was stopped', async () => {
    const plan = { argv: [], cwd: '/', env: {}, signal: live(), onOutput() {} }
    const confined = (metadata: JsonObject | undefined) =>
      recordSandbox(
        async () => ({ ok: true, code: 0, leftBehind: false, sandbox: 'landlock' }),
        async (spawn) => ({ success: (await spawn(plan)).ok, output: '', ...(metadata ? { metadata } : {}) }),
      )
    const lies: readonly (JsonObject | undefined)[] = [undefined, { sandbox: 'bubblewrap' }, { sandbox: 'none', x: 'x'.repeat(20_000) }]
    for (const metadata of lies) expect((await execute(() => confined(metadata))).metadata?.sandbox).toBe('landlock')
    const late: Tool['invoke'] = (_input, { signal }) =>
      new Promise((resolve) =>
        signal.addEventListener('abort', async () => resolve({ ...(await confined({ sandbox: 'none' })), success: false })),
      )
    expect(await execute(late, { timeouts: { t: { ms: 10, advice: 'raise it' } } })).toMatchObject({
      status: 'failed',
      metadata: { sandbox: 'landlock' },
    })
  })

  test('the tool hears which plan and which call it carries out', async () => {
    const outcome = await execute(
      async (_input, { plan, callId, conversationId }) => ({ success: true, output: [plan, callId, conversationId].join() }),
      { conversationId: 'conv' },
    )
    expect(outcome).toEqual({ status: 'allowed', output: 'p,call_1,conv' })
  })
})

describe('a long result', () => {
  const long = 'line of text\n'.repeat(1_000)
  const output = async () => ({ success: true, output: long })

  test('that nothing keeps is cut, and says how much is missing', async () => {
    const { output: shown, metadata } = await execute(output)
    expect(Buffer.byteLength(shown)).toBeLessThanOrEqual(1_000)
    expect(shown).toMatch(/\[… [\d,]+ of 13,000 bytes omitted …\]/)
    expect(metadata).toEqual({ whole: { bytes: 13_000, sha256: sha256(long) } })
  })

  test('is kept whole and redacted, and the notice says how to read on from the first byte that is missing', async () => {
    const kept: string[] = []
    const keep: ExecutorOptions['keep'] = (callId, text) => {
      kept.push(callId, text)
      return (offset) => `read from ${offset}`
    }
    const { output: shown } = await execute(output, { keep, redact: (text) => text.replaceAll('text', '[secret]') })
    const whole = long.replaceAll('text', '[secret]')
    expect(kept).toEqual(['call_1', whole])
    const [head = '', offset] = shown.split(/\[… .*; read from (\d+) …\]/)
    expect(whole.slice(0, Number(offset))).toBe(head)
  })

  test('that a full disk does not keep is cut, and the call succeeds', async () => {
    const keep = () => {
      throw new Error('database or disk is full')
    }
    expect(await execute(output, { keep })).toMatchObject({ status: 'allowed', output: expect.stringMatching(/bytes omitted …\]/) })
  })

  test('whose kept form is too long itself keeps its beginning and end', async () => {
    const kept: string[] = []
    const keep: ExecutorOptions['keep'] = (_, text) => void kept.push(text) as undefined
    await execute(output, { keep, room: () => ({ bytes: 1_000, tokens: 1_000, wholeBytes: 5_000 }) })
    expect(Buffer.byteLength(kept[0] ?? '')).toBeLessThanOrEqual(5_000)
  })

  test('of few tokens still has the limit of bytes', async () => {
    const room = () => ({ bytes: 1_000, tokens: 1_000_000, wholeBytes: 1_000_000 })
    expect(Buffer.byteLength((await execute(output, { room })).output)).toBeLessThanOrEqual(1_000)
  })

  test('of many tokens gets fewer bytes', async () => {
    const dense = async () => ({ success: true, output: 'コード'.repeat(1_000) })
    const { output: shown } = await execute(dense, { room: () => ({ bytes: 3_000, tokens: 1_000, wholeBytes: 1_000_000 }) })
    expect(tokensOf(shown)).toBeLessThanOrEqual(1_000)
    expect(Buffer.byteLength(shown)).toBeGreaterThan(1_500)
  })
})
