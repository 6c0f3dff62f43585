import { describe, expect, test } from 'bun:test'
import { collect, type Reply, type Script, stage } from '../../../test/support/agent.ts'
import { dice } from '../../../test/support/dice.ts'
import { repetitions } from '../../../test/support/tier.ts'
import { tokensOf } from '../../kit/content/tokens.ts'
import { isObject } from '../../kit/json.ts'
import type { ExternalEvent, Trim } from '../event.ts'
import { type ChatRequest, type FailureDetail, type Message, type ModelWindow, ProviderFailure, type RecordEntry } from '../port.ts'
import type { ReplayEntry } from '../replay/external-entry.ts'
import { journalled } from '../replay/recorded.fixture.ts'
import { replayRun } from '../replay/replay.ts'

const roomy = { maxToolRounds: 1000, maxParallel: 4 }

/** A window that is known, or that is learnt from a refusal. */
function windowOf(assumed: number, isKnown = true): ModelWindow & { readonly refusals: FailureDetail[] } {
  const state = { tokens: assumed }
  const refusals: FailureDetail[] = []
  return {
    refusals,
    ready: async () => {},
    tokens: () => state.tokens,
    isKnown: () => isKnown,
    scale: () => 1,
    replied: () => {},
    refused(estimated, failure) {
      refusals.push(failure)
      state.tokens = failure.windowTokens ?? Math.floor(Math.min(estimated, state.tokens) * 0.75)
      return `the window has ${state.tokens} tokens`
    },
  }
}

const wordsOf = (message: Message) => (message.role === 'assistant' ? JSON.stringify(message.parts) : message.content)
const sizeOf = ({ systemPrompt, tools, messages }: ChatRequest) =>
  tokensOf(systemPrompt) + tokensOf(JSON.stringify(tools)) + messages.reduce((sum, message) => sum + tokensOf(wordsOf(message)), 0)

/** Each round has one call, or several; the last reply is the answer. */
const rounds = (count: number, calls = 1): Reply[] => [
  ...Array.from({ length: count }, (_, at) => ({
    thinking: `thought ${at}`,
    calls: Array.from({ length: calls }, (_, n) => ({ id: `c${at}_${n}`, name: 'file_read', input: { path: `file-${at}.txt` } })),
  })),
  { text: 'the answer' },
]

function unpaired({ messages }: ChatRequest): string[] {
  const asked = messages.flatMap((message) =>
    message.role === 'assistant' ? message.parts.flatMap((part) => (part.type === 'call' ? [part.id] : [])) : [],
  )
  const answered = messages.flatMap((message) => (message.role === 'tool' ? [message.callId] : []))
  return [...asked.filter((id) => !answered.includes(id)), ...answered.filter((id) => !asked.includes(id))]
}

/** Runs a script, and returns what was journalled. */
async function run(script: Script, prompt = 'the task') {
  const entries: ReplayEntry[] = []
  const commit = async (batch: readonly RecordEntry[]) => {
    for (const entry of batch.flatMap((each) => journalled(each) ?? [])) entries.push({ ...entry, seq: entries.length + 1 })
  }
  const staged = stage({ limits: roomy, tools: ['result_read'], ...script, commit })
  const events = await collect(staged.agent, prompt)
  const trims = entries.flatMap(({ body }) => (isTrim(body) ? [body] : []))
  return { ...staged, events, entries, trims, replay: () => replayRun({ runId: staged.agent.runId() ?? '', entries, limits: roomy }) }
}

function isTrim(body: unknown): body is Trim {
  return isObject(body) && body.type === 'context.trimmed'
}

test('in a long wiggum run every request has the task and the whole evidence of the last failed check', async () => {
  const iteration = (at: number): Reply[] => [...rounds(40).slice(0, -1), { text: `done ${at}` }].map((reply, n) => fresh(reply, at, n))
  const fresh = (reply: Reply, at: number, n: number): Reply => ({
    ...reply,
    ...(reply.calls ? { calls: [{ id: `i${at}_${n}`, name: 'file_read', input: { path: `${at}-${n}.txt` } }] } : {}),
  })
  const failure = (at: number) => `failure ${at}: ${'expected one, received two; '.repeat(8)}end ${at}`
  let checks = 0
  const act: Script['act'] = async () => ({ status: 'allowed', output: 'line of a file\n'.repeat(60) })
  const summaries: string[] = []
  const summarise: Script['summarise'] = async ({ text }) => ({ text: `summary ${summaries.push(text)}` })
  const entries: ReplayEntry[] = []
  const staged = stage({
    replies: [0, 1, 2, 3].flatMap(iteration),
    limits: roomy,
    tools: ['result_read'],
    window: windowOf(4_000),
    act,
    summarise,
    checks: { names: ['one'], findings: [async () => ({ pass: checks++ === 3, evidence: failure(checks) })] },
    commit: async (batch) => {
      for (const entry of batch.flatMap((each) => journalled(each) ?? [])) entries.push({ ...entry, seq: entries.length + 1 })
    },
  })
  await staged.agent.setMode({ newMode: 'wiggum' })
  await collect(staged.agent, 'the task')
  expect([staged.agent.ending()?.code, staged.requests.length, summaries.length > 3]).toEqual(['answered', 164, true])
  for (const [at, request] of staged.requests.entries()) {
    expect(request.messages[0]).toEqual({ role: 'user', content: 'the task' })
    const known = Math.floor(at / 41)
    if (known > 0) expect([at, request.messages.some((message) => wordsOf(message).endsWith(failure(known)))]).toEqual([at, true])
    expect([at, unpaired(request), sizeOf(request) < 4_000]).toEqual([at, [], true])
  }
  const replay = replayRun({ runId: staged.agent.runId() ?? '', entries, limits: roomy })
  expect([replay.divergence, replay.ended]).toEqual([undefined, true])
})

describe('what does not fit', () => {
  test('a single message larger than the window is not sent, the error says so, and the next turn works', async () => {
    const { agent, requests, events } = await run({ replies: [{ text: 'ok' }], window: windowOf(4_000) }, 'word '.repeat(8_000))
    expect(requests).toEqual([])
    expect(agent.ending()).toMatchObject({
      code: 'provider',
      message: expect.stringMatching(/about \d+ tokens and was not sent.*window has 4000/),
    })
    expect(events.at(-1)).toMatchObject({ type: 'done', stopReason: 'error' })
    expect(await collect(agent, 'hello')).toContainEqual({ type: 'text', content: 'ok', isPartial: false })
  })

  test('a message larger than a window that is only assumed is sent: the server may take it', async () => {
    const { agent, requests } = await run({ replies: [{ text: 'ok' }], window: windowOf(4_000, false) }, 'word '.repeat(8_000))
    expect([requests.length, agent.ending()?.code]).toEqual([1, 'answered'])
  })

  test('a refusal of what cannot be made smaller is not repeated', async () => {
    const refuse = () => {
      throw new ProviderFailure('context_length', 'too long', {})
    }
    const { agent, requests } = await run({ replies: [{ text: 'ok' }], window: windowOf(4_000), refuse })
    expect(requests.length).toBe(1)
    expect(agent.ending()?.message).toContain('too long; nothing more of it can be left out')
  })

  test('a model that refuses whatever is sent is asked three times, each time with less', async () => {
    const refuse = (request: ChatRequest) => {
      if (request.messages.length > 2) throw new ProviderFailure('context_length', 'too long', {})
    }
    const act: Script['act'] = async () => ({ status: 'allowed', output: 'word '.repeat(500) })
    const { agent, requests, trims } = await run({ replies: rounds(1, 6), window: windowOf(200_000), act, refuse })
    const tried = requests.slice(1).map(sizeOf)
    expect(tried.length).toBeLessThanOrEqual(3)
    expect(tried).toEqual(tried.toSorted((a, b) => b - a))
    expect(trims.length).toBe(tried.length - 1)
    expect(agent.ending()?.code).toBe('provider')
  })

  test('a trim that no request asked for is rejected', async () => {
    const { agent } = await run({ replies: [{ text: 'ok' }] })
    expect(agent.ending()?.code).toBe('answered')
    const forged: ExternalEvent = {
      type: 'context.trimmed',
      window: 1,
      before: 1,
      after: 1,
      lines: [],
      omitted: 0,
      readable: true,
      digest: '',
    }
    const { divergence } = replayRun({
      runId: 'r',
      limits: roomy,
      entries: [forged].map((event) => ({ seq: 1, kind: 'external', type: event.type, body: event })),
    })
    expect(divergence?.replayed).toBe('a refusal of it by loop')
  })
})

describe('a long turn', () => {
  for (const window of [4_000, 8_000, 32_000, 200_000])
    test(`of 60 calls ends answered in a window of ${window}; each request fits, calls and results stay in pairs, and a replay is equal`, async () => {
      const output = 'line of a file\n'.repeat(window / 50)
      const act: Script['act'] = async () => ({ status: 'allowed', output })
      const summarise = async () => ({ text: 'files were read', usage: { inputTokens: 7, outputTokens: 3 } })
      const { agent, requests, trims, events, replay } = await run({ replies: rounds(60), window: windowOf(window), act, summarise })
      expect(agent.ending()?.code).toBe('answered')
      expect(trims.length).toBeGreaterThan(1)
      for (const request of requests) {
        expect(sizeOf(request)).toBeLessThan(window * 0.75)
        expect(unpaired(request)).toEqual([])
        expect(request.messages[0]).toEqual({ role: 'user', content: 'the task' })
        expect(request.messages.at(-1)).toMatchObject(request === requests[0] ? { role: 'user' } : { role: 'tool', content: output })
      }
      for (const trim of trims) expect(trim.after).toBeLessThanOrEqual(window * 0.41)
      const complete = events.filter((event) => event.type !== 'text' || !event.isPartial)
      expect(replay().divergence).toBeUndefined()
      expect([...replay().events]).toEqual(complete)
      expect(events.filter(({ type }) => type === 'error')).toHaveLength(trims.length)
    })

  test('keeps the beginning of its requests the same between two trims', async () => {
    const act: Script['act'] = async () => ({ status: 'allowed', output: 'word '.repeat(400) })
    const { requests, trims } = await run({ replies: rounds(60), window: windowOf(16_000), act })
    const changed = requests.filter((request, at) => {
      const before = requests[at - 1]?.messages ?? []
      return JSON.stringify(request.messages.slice(0, before.length)) !== JSON.stringify(before)
    })
    expect(changed.length).toBe(trims.length)
    expect(trims.length).toBeLessThan(12)
  })

  test('names a result that it left out by tool, arguments, size and the id to read it again with', async () => {
    const act: Script['act'] = async () => ({ status: 'allowed', output: 'word '.repeat(400) })
    const { requests, agent } = await run({ replies: rounds(20), window: windowOf(8_000), act })
    const line = requests.at(-1)?.messages.find((message) => message.role === 'tool')
    const id = `${agent.runId()?.slice(-6)}.c0_0`
    expect(requests.flatMap(({ messages }) => messages.map(wordsOf))).toContain(
      `[result of file_read {"path":"file-0.txt"}, 2000 bytes, left out to save room; result_read {"id":"${id}"} reads it again]`,
    )
    expect(line).toBeDefined()
  })

  test('that was changed in the journal does not replay', async () => {
    const act: Script['act'] = async () => ({ status: 'allowed', output: 'word '.repeat(400) })
    const { entries, replay } = await run({
      replies: rounds(60),
      window: windowOf(4_000),
      act,
      summarise: async () => ({ text: 'a summary' }),
    })
    expect(replay().divergence).toBeUndefined()
    const at = entries.findIndex(({ body }) => isTrim(body) && body.summary)
    const [entry] = entries.slice(at, at + 1)
    if (!entry || !isTrim(entry.body)) throw new Error('no summary was made')
    entries[at] = { ...entry, body: { ...entry.body, summary: { ...entry.body.summary, text: 'another' } } }
    expect(replay().divergence).toMatchObject({ event: at + 1, journalled: expect.stringContaining('to other messages') })
  })

  const act: Script['act'] = async () => ({ status: 'allowed', output: 'word '.repeat(150) })
  const summaries: { readonly [name: string]: Script['summarise'] } = {
    fails: async () => undefined,
    'is empty': async () => ({ text: '  \n' }),
    'is longer than what it replaces': async () => ({ text: 'word '.repeat(9_000) }),
  }
  for (const [name, summarise] of Object.entries(summaries))
    test(`whose summary ${name} keeps a list of its calls`, async () => {
      const { agent, trims, requests } = await run({
        replies: rounds(80),
        window: windowOf(4_000),
        act,
        ...(summarise ? { summarise } : {}),
      })
      expect(agent.ending()?.code).toBe('answered')
      const bys = trims.flatMap(({ summary }) => (summary ? [summary.by] : []))
      expect(new Set(bys)).toEqual(new Set(['runtime']))
      expect(requests.at(-1)?.messages.map(wordsOf).join('\n')).toMatch(/- file_read \{"path":"file-\d+.txt"\}: done/)
    })

  test('marks the replies from before a trim, and stores no secret of a summary', async () => {
    const summarise = async () => ({ text: 'the key is sk-planted' })
    const redact = <T>(value: T): T => JSON.parse(JSON.stringify(value).replaceAll('sk-planted', '[secret]'))
    const { requests, entries, trims, replay } = await run({ replies: rounds(60), window: windowOf(4_000), act, summarise, redact })
    expect(trims.some(({ summary }) => summary?.text === 'the key is [secret]')).toBe(true)
    expect(JSON.stringify([entries, requests])).not.toContain('sk-planted')
    expect(replay().divergence).toBeUndefined()
    const marks = requests.at(-1)?.messages.flatMap((message) => (message.role === 'assistant' ? [message.isAfterTrim === true] : [])) ?? []
    expect(marks.includes(true)).toBe(true)
    expect(marks).toEqual(marks.toSorted((a, b) => Number(b) - Number(a)))
  })

  test('that is cancelled while the model summarises ends cancelled', async () => {
    const summarise: Script['summarise'] = (_, signal) => {
      agent.cancel('ann')
      return new Promise(() => signal)
    }
    const { agent } = stage({ replies: rounds(80), window: windowOf(4_000), act, limits: roomy, summarise })
    await collect(agent, 'the task')
    expect(agent.ending()?.code).toBe('cancelled')
  })

  test('pays for its summaries, and stops at the limit of the run', async () => {
    const summarise = async () => ({ text: 'short', usage: { inputTokens: 5_000, outputTokens: 10 } })
    const script = { replies: rounds(80), window: windowOf(4_000), act, summarise }
    const free = await run(script)
    expect(free.agent.usage()?.inputTokens).toBeGreaterThan(5_000)
    const { agent } = await run({ ...script, window: windowOf(4_000), limits: { ...roomy, maxTokens: 5_000 } })
    expect(agent.ending()?.code).toBe('budget')
  })

  test('leaves out earlier turns before the middle of this one is summarised, whole turns, the oldest first', async () => {
    const turn = (n: number): Message[] => [
      { role: 'user', content: `question ${n} ${'word '.repeat(300)}` },
      { role: 'assistant', parts: [{ type: 'call', id: `old${n}`, name: 'file_read', input: {} }] },
      { role: 'tool', callId: `old${n}`, name: 'file_read', content: 'x', isError: false },
      { role: 'assistant', parts: [{ type: 'text', text: 'answer' }] },
    ]
    const history = [0, 1, 2, 3, 4, 5].flatMap(turn)
    const { requests, trims } = await run({ replies: rounds(3), window: windowOf(4_000), history, act })
    expect(trims[0]).toMatchObject({ omitted: 12, lines: [] })
    expect(requests.every((request) => unpaired(request).length === 0)).toBe(true)
    expect(requests.at(-1)?.messages[0]).toMatchObject({ content: expect.stringContaining('12 earlier messages') })
    expect(requests.at(-1)?.messages[1]).toMatchObject({ content: expect.stringContaining('question 3') })
  })
})

test('random turns: a model refuses for length at most once, none is lost, and each replay is equal', async () => {
  const turns = Number(process.env.RANDOM_TURNS ?? repetitions({ fast: 25, deep: 2_000 }))
  for (let seed = 1; seed <= turns; seed += 1) {
    const roll = dice(seed)
    const window = [4_000, 8_000, 32_000, 200_000][roll(4)] ?? 4_000
    const known = windowOf(roll(2) === 0 ? window : 200_000)
    const kinds = ['word ', 'コードを読む。', '{"a":1,"b":[2,3]},', 'QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo'] as const
    const sizes = Array.from({ length: 400 }, () => roll(4_000))
    let call = 0
    const act: Script['act'] = async () => {
      const kind = kinds[roll(kinds.length)] ?? 'word '
      const most = Math.min(known.tokens(), 200_000) / 8
      let output = kind.repeat(Math.ceil((sizes[call++ % sizes.length] ?? 0) / kind.length) + 1)
      while (tokensOf(output) > most) output = output.slice(0, output.length / 2)
      return { status: roll(5) === 0 ? 'failed' : 'allowed', output }
    }
    const refuse = (request: ChatRequest) => {
      const sentTokens = sizeOf(request)
      if (sentTokens > window) throw new ProviderFailure('context_length', 'too long', { windowTokens: window, sentTokens })
    }
    const summarise = roll(3) === 0 ? undefined : async () => ({ text: ['', 'short', 'word '.repeat(5_000)][roll(3)] ?? '' })
    const replies = rounds(1 + roll(40), 1 + roll(3))
    const { agent, requests, replay } = await run({ replies, window: known, act, refuse, ...(summarise ? { summarise } : {}) })
    expect([seed, agent.ending()?.code, known.refusals.length <= 1]).toEqual([seed, 'answered', true])
    expect([seed, requests.flatMap(unpaired)]).toEqual([seed, []])
    expect([seed, replay().divergence, replay().ended]).toEqual([seed, undefined, true])
  }
})

test('old pictures of results go first when a turn is trimmed, the newest stays, and a replay agrees', async () => {
  const picture = (at: number) => ({ type: 'image/png', sha256: String(at).repeat(64) }) as const
  let acted = 0
  const act: Script['act'] = async () => ({ status: 'allowed', output: 'a picture', pictures: [picture(acted++)] })
  const { requests, trims, replay, agent } = await run({ replies: rounds(6), window: windowOf(10_000), act })
  const shown = ({ messages }: ChatRequest) =>
    messages
      .flatMap((message) => (message.role === 'tool' ? (message.pictures ?? []) : []))
      .map((each) => 'sha256' in each && each.sha256[0])
  expect([agent.ending()?.code, trims.length > 0]).toEqual(['answered', true])
  for (const [at, request] of requests.entries()) {
    expect(shown(request).length).toBeLessThanOrEqual(3)
    if (at > 0) expect(shown(request).at(-1)).toBe(String(at - 1))
  }
  const replayed = replay()
  expect([replayed.divergence, replayed.ended]).toEqual([undefined, true])
})
