/** Through the real executable: turns that are many times longer than the window of their model end answered, and replay. */

import { describe, expect, test } from 'bun:test'
import { isObject } from '../../src/kit/json.ts'
import { nest } from '../support/cli.ts'
import { isDeep } from '../support/tier.ts'
import { startWindowServer, type WindowRequest, type Wording } from '../support/window-server.ts'

type Message = {
  readonly role: string
  readonly content: string | null
  readonly tool_call_id?: string
  readonly tool_calls?: readonly { readonly id: string }[]
}

const fact = 'the planted fact is 7431-XQ'

function messagesOf({ body }: WindowRequest): readonly Message[] {
  return isObject(body) && Array.isArray(body.messages) ? body.messages : []
}

/** Calls without a result, and results without a call. */
function unpaired(request: WindowRequest): readonly string[] {
  const messages = messagesOf(request)
  const asked = messages.flatMap(({ tool_calls: calls }) => (calls ?? []).map(({ id }) => id))
  const answered = messages.flatMap(({ tool_call_id: id }) => id ?? [])
  return [...asked.filter((id) => !answered.includes(id)), ...answered.filter((id) => !asked.includes(id))]
}

/**
 * Reads one file a round. From round 90 on, or after the last but one, it looks page by page through the list of results for the file of
 * round 3, and reads the result again.
 */
function reader(rounds: number) {
  const state = { round: 0, id: '', told: '' }
  const call = (name: string, input: object) => ({
    tool_calls: [{ id: `call_${state.round}`, type: 'function', function: { name, arguments: JSON.stringify(input) } }],
  })
  const reply = (request: WindowRequest) => {
    if (!isObject(request.body) || !Array.isArray(request.body.tools)) return 'Files were read.'
    const last = messagesOf(request).at(-1)?.content ?? ''
    state.round += 1
    if (state.round < Math.min(90, rounds)) return call('file_read', { path: `f${state.round}.txt` })
    if (state.told !== '') return state.round <= rounds ? call('file_read', { path: `f${state.round}.txt` }) : 'The answer'
    if (last.includes(fact)) state.told = fact
    if (state.id === '') {
      state.id = /(\S+) file_read \{"path":"f3\.txt"\}/.exec(last)?.[1] ?? ''
      const offset = Number(/continue with offset (\d+)\]$/.exec(last)?.[1] ?? 0)
      if (state.id === '') return call('result_read', last.startsWith('a file') ? {} : { offset })
    }
    return call('result_read', { id: state.id })
  }
  return { state, reply }
}

/** Reads one file a round, whatever the process that asks. `seen` is called with each request before it is answered. */
function steadyReader(rounds: number, seen: (n: number, isSummary: boolean) => void) {
  const state = { round: 0, n: 0 }
  return (request: WindowRequest) => {
    const isSummary = !isObject(request.body) || !Array.isArray(request.body.tools)
    seen(state.n++, isSummary)
    if (isSummary) return 'Files were read.'
    state.round += 1
    const call = {
      id: `call_${state.round}`,
      type: 'function',
      function: { name: 'file_read', arguments: `{"path":"f${state.round}.txt"}` },
    }
    return state.round <= rounds ? { tool_calls: [call] } : 'The answer'
  }
}

type Case = { readonly window: number; readonly calls: number; readonly wording?: Wording; readonly bytes?: number }

const kinds = ['some words of prose', 'QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0NTY3ODk', 'コードを読んで直す', '{"a":[1,2,{"b":null}]}']

const configFor = (url: string, workspace: string) => `default_provider = "w"
workspace_dir = "${workspace}"
[providers.models.w]
kind = "openai-compatible"
base_url = "${url}"
model = "m"
[limits]
max_tool_rounds = 1000
`

async function longTurn({ window, calls, wording = 'openai', bytes = 65_536 }: Case): Promise<void> {
  const { state, reply } = reader(calls)
  using server = startWindowServer({ window, wording, reply })
  using at = nest()
  at.config(configFor(server.url, at.workspace))
  for (let number = 1; number <= calls; number += 1) {
    const kind = kinds[number % kinds.length] ?? ''
    const lines = Math.ceil((number % 3 === 0 ? bytes : bytes / 20) / Buffer.byteLength(kind))
    at.file(`f${number}.txt`, [number === 3 ? fact : 'a file', ...Array.from({ length: lines }, () => kind)].join('\n'))
  }
  const { code, stdout, stderr } = await at.run(['agent', '--json', '-m', 'read the files'], { timeoutMs: 110_000 })
  const { result, context, errors } = JSON.parse(stdout)
  expect([code, result, stderr]).toMatchObject([0, expect.stringContaining('The answer'), expect.any(String)])
  const refused = server.requests.filter(({ outcome }) => outcome === 'refused').length
  expect(refused).toBeLessThanOrEqual(1)
  expect(server.requests.flatMap(unpaired)).toEqual([])
  expect(context.trimmed).toBe(errors.length)
  expect(context.window).toBe(refused > 0 ? window : Math.max(32_768, context.window))
  expect(state.told).toBe(fact)
  expect((await at.run(['replay', 'last'])).code).toBe(0)
  expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
  const before = server.requests.length
  expect(await at.run(['agent', '-c', '-m', 'and now?'])).toMatchObject({ code: 0 })
  expect(server.requests.slice(before).map(({ outcome }) => outcome)).toEqual(['answered'])
}

describe('a turn of many calls ends answered', () => {
  const fast: readonly Case[] = [
    { window: 4_000, calls: 20, wording: 'llamaCpp' },
    { window: 8_000, calls: 100, wording: 'lmStudio', bytes: 8_192 },
  ]
  // LONG_TURNS=all makes 400 calls in each window.
  const most = (window: number) => (process.env.LONG_TURNS === 'all' || window === 8_000 || window === 200_000 ? [10, 100, 400] : [10, 100])
  const deep = [4_000, 8_000, 32_000, 200_000, 1_000_000].flatMap((window) => most(window).map((calls): Case => ({ window, calls })))
  for (const each of isDeep ? deep : fast)
    test(`in a window of ${each.window}: ${each.calls} calls`, async () => await longTurn(each), 120_000)
})

test('kill -9 while the middle is summarised, right after a trim and at other requests: the turn goes on, shortened as it was, and every request fits', async () => {
  const rounds = 24
  const dieAt = { any: [3, 6] as number[], summary: 1, afterSummary: 1 }
  const process = { pid: 0 }
  let last = false
  const die = () => globalThis.process.kill(process.pid, 'SIGKILL')
  const reply = steadyReader(rounds, (n, isSummary) => {
    if (dieAt.any.includes(n)) {
      dieAt.any.splice(dieAt.any.indexOf(n), 1)
      die()
    } else if (isSummary && dieAt.summary-- > 0) die()
    else if (!isSummary && last && dieAt.afterSummary-- > 0) die()
    last = isSummary
  })
  using server = startWindowServer({ window: 4_000, reply })
  using at = nest()
  at.config(`${configFor(server.url, at.workspace).replace('model = "m"', 'model = "m"\ncontext_tokens = 4000')}`)
  for (let number = 1; number <= rounds * 2; number += 1) at.file(`f${number}.txt`, `file ${number}\n${'some words of prose\n'.repeat(80)}`)
  const codes: (number | null)[] = []
  for (let args = ['agent', '-m', 'read the files']; codes.at(-1) !== 0 && codes.length < 8; args = ['agent', '--continue-turn']) {
    const started = at.start(args)
    process.pid = started.pid
    codes.push((await started.result).code)
  }
  expect(codes.filter((code) => code === null).length).toBe(4)
  expect(codes.at(-1)).toBe(0)
  expect(server.requests.filter(({ outcome }) => outcome !== 'answered')).toEqual([])
  expect(server.requests.flatMap(unpaired)).toEqual([])
  const asking = server.requests.filter(({ body }) => isObject(body) && Array.isArray(body.tools))
  for (const request of asking) expect(messagesOf(request)[1]).toMatchObject({ role: 'user', content: 'read the files' })
  expect((await at.run(['replay', '--all'])).code).toBe(0)
  expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
}, 60_000)
