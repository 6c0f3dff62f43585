/** What model calls cost, through the real executable: real usage from real wires, kills, several processes, channels and tokens. */

import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CostReport } from '../../src/host/access/cost/cost.ts'
import type { Nest } from '../support/cli.ts'
import { gateway, tokenOf } from '../support/gateway.ts'
import { chunk, document, startRaw, streamed } from '../support/raw-server.ts'
import { call, home, refused, scripted, turn } from '../support/turns.ts'

const costs = async (at: Nest, ...flags: string[]): Promise<CostReport> => JSON.parse((await at.run(['cost', '--json', ...flags])).stdout)
const reply = { text: 'Hello.', usage: { input_tokens: 1000, output_tokens: 500 } }
const settings = (at: Nest) => join(at.home, '.braidclaw/config.toml')

/** The mock costs a millionth of a dollar a token in, two a token out. */
function priced(limits = '', more = ''): Nest {
  const at = home(`\n[limits]\n${limits}\n${more}`)
  at.config(readFileSync(settings(at), 'utf8').replace('kind = "mock"\n', 'kind = "mock"\nprice_input = 1\nprice_output = 2\n'))
  return at
}

describe('usage from the wire', () => {
  const completion = (usage: object) =>
    document({
      id: 'x',
      model: 'm-1',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hi.' }, finish_reason: 'stop' }],
      usage,
    })
  const message = (usage: object) =>
    document({
      id: 'x',
      type: 'message',
      role: 'assistant',
      model: 'm-2',
      content: [{ type: 'text', text: 'Hi.' }],
      stop_reason: 'end_turn',
      usage,
    })
  const openai = { prompt_tokens: 2006, completion_tokens: 300, total_tokens: 2306, prompt_tokens_details: { cached_tokens: 1920 } }
  const anthropic = { input_tokens: 50, output_tokens: 503, cache_creation_input_tokens: 188, cache_read_input_tokens: 100_000 }
  const provider = (name: string, kind: string, url: string) =>
    `[providers.models.${name}]\nkind = "${kind}"\nbase_url = "${url}"\nmodel = "${name}-1"\nstream = false\nmax_retries = 0\n`

  test('of OpenAI and of Anthropic, with cached tokens, costs what models.toml says', async () => {
    using one = startRaw([completion(openai)])
    using two = startRaw([message(anthropic)])
    using at = home(`${provider('near', 'openai-compatible', one.url)}${provider('far', 'anthropic', two.url)}`)
    const prices = 'price_input = 3\nprice_output = 15\nprice_cached = 0.3\nprice_cache_write = 3.75\n'
    writeFileSync(join(at.home, '.braidclaw/models.toml'), `[near.near-1]\n${prices}[far.far-1]\n${prices}`)
    for (const model of ['near', 'far']) {
      const result = await at.run(['agent', '-m', 'hi', '--model', model], { env: { ANTHROPIC_API_KEY: 'a-key-for-the-test' } })
      expect(result).toMatchObject({ code: 0, stdout: 'Hi.\n' })
    }
    const { rows, total } = await costs(at, '--by', 'model')
    const [near, far] = [Math.ceil(86 * 3 + 1920 * 0.3 + 300 * 15), Math.ceil(50 * 3 + 188 * 3.75 + 100_000 * 0.3 + 503 * 15)]
    expect(
      rows.map(({ key, inputTokens, cachedTokens, outputTokens, micros }) => [key, inputTokens, cachedTokens, outputTokens, micros]),
    ).toEqual([
      ['far/m-2', 100_238, 100_000, 503, far],
      ['near/m-1', 2006, 1920, 300, near],
    ])
    expect(rows.map(({ cachedShare }) => cachedShare)).toEqual([0.998, 0.957])
    expect(total).toMatchObject({ calls: 2, micros: near + far, unpricedCalls: 0, tokens: 2306 + 100_741 })
    const { stdout } = await at.run(['cost', '--by', 'model'])
    expect(stdout).toContain(`$${((near + far) / 1e6).toFixed(4)}`)
  }, 120_000)

  test('without a price is counted in tokens, and its cost is unknown, not nothing', async () => {
    using one = startRaw([completion(openai)])
    using at = home(provider('near', 'openai-compatible', one.url))
    expect((await at.run(['agent', '-m', 'hi', '--model', 'near'])).code).toBe(0)
    expect((await costs(at)).total).toMatchObject({ tokens: 2306, micros: 0, unpricedCalls: 1 })
    const { stdout } = await at.run(['cost'])
    expect(stdout).toMatch(/total +1 +2,006 +1,920 +96% +300 +0 +unknown/)
    expect(stdout).toContain('1 call without a known price')
  })

  test('that breaks off in the middle is a call of which nothing is known', async () => {
    using one = startRaw([streamed(chunk({ content: 'Hel' }), 'cut')])
    using at = home(provider('near', 'openai-compatible', one.url).replace('stream = false\n', ''))
    expect((await at.run(['agent', '-m', 'hi', '--model', 'near'])).code).toBe(8)
    expect((await costs(at)).total).toMatchObject({ calls: 0, lostCalls: 1 })
  })

  test('of a server that is not there, or that refuses, is nothing', async () => {
    using one = startRaw([document({ error: { message: 'no' } }, '401 Unauthorized')])
    using at = home(`${provider('near', 'openai-compatible', one.url)}${provider('gone', 'openai-compatible', 'http://127.0.0.1:1/v1')}`)
    for (const model of ['near', 'gone']) expect((await at.run(['agent', '-m', 'hi', '--model', model])).code).toBe(8)
    expect((await costs(at)).total).toMatchObject({ calls: 0, lostCalls: 0, tokens: 0 })
  })
})

describe('a process that is killed while the model is asked', () => {
  async function killed(at: Nest, isAsked: () => boolean): Promise<void> {
    const started = at.start(['agent', '-m', 'go'], { env: scripted(at, [{ ...reply, delay_ms: 20_000 }]).env, timeoutMs: 30_000 })
    for (let tries = 0; tries < 500 && !isAsked(); tries++) await Bun.sleep(20)
    process.kill(started.pid, 'SIGKILL')
    await started.result
  }
  const counts = (at: Nest, query: string) => {
    try {
      using db = new Database(join(at.home, '.braidclaw/memory.sqlite'))
      return (db.query<{ n: number }, []>(query).get()?.n ?? 0) > 0
    } catch {
      return false
    }
  }

  test('leaves one call of which nothing is known, where nothing is reserved', async () => {
    using at = priced()
    await killed(at, () => counts(at, "SELECT count(*) AS n FROM journal WHERE type = 'run.start'"))
    await turn(at, [reply])
    expect((await costs(at)).total).toMatchObject({ calls: 1, micros: 2000, lostCalls: 1, unsettledCalls: 0 })
    expect((await at.run(['cost'])).stdout).toContain('1 call broken off, with nothing reserved')
  }, 120_000)

  test('has spent all that it reserved, once, and the sums equal what the limit counts', async () => {
    using at = priced('daily_usd = 0.5')
    await killed(at, () => counts(at, 'SELECT count(*) AS n FROM budget_reservations'))
    await turn(at, [reply])
    const { total, limits, reserved } = await costs(at)
    expect(total).toMatchObject({ calls: 2, unsettledCalls: 1, lostCalls: 0 })
    expect(total.unsettledTokens).toBeGreaterThan(16_000)
    expect(limits).toMatchObject([{ scope: 'home', unit: 'micros', spent: total.micros, reserved: 0 }])
    expect(reserved).toEqual({ tokens: 0, micros: 0 })
    expect((await at.run(['cost'])).stdout).toContain(
      '1 call never settled (killed, cancelled or broken off): all that was reserved counts',
    )
  }, 120_000)
})

test('processes at once, some of them killed, never pass the limit of a channel', async () => {
  const limit = 130_000
  using at = priced(`channel_daily_usd = ${limit / 1e6}\n`)
  await turn(at, [reply])
  const slow = [
    { ...call('time', {}), delay_ms: 600 },
    { ...reply, delay_ms: 600 },
  ]
  const all: (number | null)[] = []
  for (let round = 0; round < 4; round++) {
    const started = Array.from({ length: 4 }, () => at.start(['agent', '-m', 'go'], { env: scripted(at, slow).env, timeoutMs: 40_000 }))
    const pids = started.map(({ pid }) => pid)
    for (let tries = 0; tries < 300 && holders(at, pids).length < 2; tries++) await Bun.sleep(10)
    for (const pid of holders(at, pids).slice(0, 1 + (round % 2))) kill(pid)
    all.push(...(await Promise.all(started.map(async ({ result }) => (await result).code))))
    const { total, limits } = await costs(at)
    const [state] = limits
    expect(limits).toMatchObject([{ scope: 'channel:cli', setting: 'limits.channel_daily_usd', limit, reserved: 0 }])
    expect(state?.spent).toBeLessThanOrEqual(limit)
    // A kill after settling and before the answer is on disk leaves a call that only the limit counts; it is told as lost.
    if (total.lostCalls === 0) expect(total.micros).toBe(state?.spent ?? -1)
    else expect(total.micros).toBeLessThan(state?.spent ?? -1)
  }
  expect(new Set(all)).toEqual(new Set([0, 6, null]))
}, 120_000)

/** Returns the processes of these that have reserved something for a call. */
function holders(at: Nest, pids: readonly number[]): number[] {
  using db = new Database(join(at.home, '.braidclaw/memory.sqlite'))
  db.run('PRAGMA busy_timeout = 5000')
  const owners = db.query<{ owner: string }, []>('SELECT DISTINCT owner FROM budget_reservations').all()
  return owners.map(({ owner }) => Number.parseInt(owner, 10)).filter((pid) => pids.includes(pid))
}

/** The process may have ended by itself. */
function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {}
}

describe('a limit of one channel', () => {
  test('refuses there, names it, and leaves other channels alone', async () => {
    using at = priced('channel_daily_tokens = 2600')
    expect((await turn(at, [reply])).code).toBe(0)
    refused(await turn(at, [reply]), 6, 'error: channel:cli: of limits.channel_daily_tokens', 'free again at')
    const other = await at.run(['filter', 'hi'], { stdin: '', env: scripted(at, [reply]).env })
    expect(other.code).toBe(0)
    const { rows } = await costs(at, '--by', 'channel')
    expect(rows.map(({ key, tokens }) => [key, tokens])).toEqual([
      ['cli', 1500],
      ['filter', 1500],
    ])
  })
})

describe('an access token', () => {
  test('has a day of its own, sees its own part, and the operator sees all by name', async () => {
    using at = priced('token_daily_tokens = 2000')
    const [anna, ben] = [
      await tokenOf(at, 'anna', '--scope', 'chat', '--scope', 'read'),
      await tokenOf(at, 'ben', '--scope', 'chat', '--scope', 'read'),
    ]
    await using server = await gateway(at, [], { env: scripted(at, [reply, reply, reply, reply]).env })
    const as = (secret: string) => ({ headers: { authorization: `Bearer ${secret}` } })
    expect((await server.ask('/chat', { message: 'hi' }, as(anna))).body.ending.code).toBe('answered')
    const second = await server.ask('/chat', { message: 'hi' }, as(anna))
    expect(second.body.ending).toMatchObject({ code: 'budget', message: expect.stringContaining('limits.token_daily_tokens') })
    expect((await server.ask('/chat', { message: 'hi' }, as(ben))).body.ending.code).toBe('answered')
    expect((await server.ask('/cost', undefined, { headers: { authorization: '' } })).status).toBe(401)
    expect((await server.ask('/cost?by=nothing', undefined, as(ben))).status).toBe(400)
    expect((await server.ask('/cost?days=0', undefined, as(ben))).status).toBe(400)
    const own = await server.ask('/cost?by=token', undefined, as(ben))
    expect(own.body).toMatchObject({ total: { calls: 1, tokens: 1500, cost_micros: 2000 }, rows: [{ title: 'ben', tokens: 1500 }] })
    expect(own.body.limits).toMatchObject([{ setting: 'limits.token_daily_tokens', spent: 1500, left: 500 }])
    const all = await server.ask('/cost?by=token')
    expect(all.body.rows.map(({ title }: { title: string }) => title).toSorted()).toEqual(['anna', 'ben'])
    expect((await costs(at, '--by', 'token')).rows).toHaveLength(2)
  }, 120_000)
})

describe('a price that is not known', () => {
  const wire = (url: string) =>
    `[providers.models.near]\nkind = "openai-compatible"\nbase_url = "${url}"\nmodel = "m"\nmax_retries = 0\nmax_output_tokens = 1000\nstream = false\n`
  const answer = document({
    id: 'x',
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hi.' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 900, completion_tokens: 700 },
  })

  test('under a limit of money alone refuses; with a limit of tokens beside it that one holds, and is said once', async () => {
    using server = startRaw([answer, answer])
    using at = priced('daily_usd = 1\n', wire(server.url))
    const ask = () => at.run(['agent', '-m', 'hi', '--model', 'near'])
    refused(await ask(), 6, 'limits.daily_usd cannot hold', 'models.toml', 'or set limits.daily_tokens too')
    expect(server.asked).toEqual([])
    at.config(readFileSync(settings(at), 'utf8').replace('daily_usd = 1\n', 'daily_usd = 1\ndaily_tokens = 2500\n'))
    const { code, stderr } = await ask()
    expect(code).toBe(0)
    expect(stderr.split('only limits.daily_tokens limits it')).toHaveLength(2)
    refused(await ask(), 6, 'home: of limits.daily_tokens')
  })
})

test('the sums survive "memory clear", and by what they can be told is kept', async () => {
  using at = priced()
  await turn(at, [reply])
  const before = (await costs(at)).total
  expect((await at.run(['memory', 'clear', '--yes'])).code).toBe(0)
  expect((await costs(at)).total).toEqual(before)
  expect((await costs(at, '--by', 'channel')).rows).toMatchObject([{ key: 'cli', tokens: 1500, micros: 2000 }])
})

test('a command line that makes no sense says what would', async () => {
  using at = home()
  refused(await at.run(['cost', '--by', 'modl']), 2, '--by is one of day, model', 'did you mean "model"?')
  refused(await at.run(['cost', '--days', '0']), 2, '--days: 0 is out of range')
})
