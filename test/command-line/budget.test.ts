/** Budgets through the real executable: reserved before a call and settled after it, for all processes of a home, and a kill spends what it had reserved. */

import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { chunk, document, startRaw, streamed } from '../support/raw-server.ts'
import { call, home, refused, turn } from '../support/turns.ts'

/** The mock costs a millionth of a dollar a token in, two a token out. */
function priced(limits: string, provider = ''): Nest {
  const at = home(`\n[limits]\n${limits}\n${provider}`)
  const file = join(at.home, '.braidclaw/config.toml')
  const text = readFileSync(file, 'utf8')
  at.config(text.replace('kind = "mock"\n', 'kind = "mock"\nprice_input = 1\nprice_output = 2\n'))
  return at
}

type Row = { readonly scope: string; readonly unit: string; readonly spent: number; readonly reserved: number; readonly left: number }

const rows = async (at: Nest): Promise<Row[]> => JSON.parse((await at.run(['budget', '--json'])).stdout)
const ofHome = async (at: Nest) => (await rows(at)).find(({ scope }) => scope === 'home')
const reply = { text: 'Hello.', usage: { input_tokens: 1000, output_tokens: 500 } }
const sql = (at: Nest) => new Database(join(at.home, '.braidclaw/memory.sqlite'))

describe('a day for the home', () => {
  test('is shared by processes that run at once: they cannot spend more, and those without room say whose budget it is', async () => {
    using at = priced('daily_usd = 0.011')
    await turn(at, [reply])
    const results = await Promise.all(Array.from({ length: 12 }, () => turn(at, [{ ...reply, delay_ms: 300 }], [], { timeoutMs: 30_000 })))
    const codes = results.map(({ code }) => code)
    expect(new Set(codes)).toEqual(new Set([0, 6]))
    expect(codes.filter((code) => code === 0).length).toBeLessThanOrEqual(4)
    for (const { code, stderr } of results)
      if (code === 6)
        expect(stderr).toMatch(
          /error: home: of limits\.daily_usd \(\$0\.0110\) .* are spent.*; this call needs at least \$0\.00\d\d; free again at \d{4}-\d\d-\d\dT00:00Z \(in \d+ h \d+ min\), or raise limits\.daily_usd/,
        )
    const state = await ofHome(at)
    expect(state).toMatchObject({ unit: 'micros', reserved: 0 })
    expect(state?.spent).toBe(2000 * (1 + codes.filter((code) => code === 0).length))
    expect(state?.spent).toBeLessThanOrEqual(11_000)
  }, 120_000)

  test('a process that is killed between reserving and settling has spent all that it reserved', async () => {
    using at = priced('daily_usd = 0.05')
    const started = at.start(['agent', '-m', 'go'], { env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture([{ ...reply, delay_ms: 8000 }]) } })
    for (let tries = 0; tries < 300 && ((await held(at)) ?? 0) === 0; tries++) await Bun.sleep(20)
    const reserved = await held(at)
    expect(reserved).toBeGreaterThan(30_000)
    expect(await ofHome(at)).toMatchObject({ spent: 0, reserved })
    process.kill(started.pid, 'SIGKILL')
    await started.result
    expect(await ofHome(at)).toMatchObject({ spent: reserved, reserved: 0 })
  }, 120_000)

  test('tokens count as well, and a home without a budget reserves nothing', async () => {
    using at = priced('daily_tokens = 2000000')
    await turn(at, [call('time', {}), reply])
    expect((await ofHome(at))?.spent).toBeGreaterThan(1500)
    using free = home()
    await turn(free, [reply])
    using db = sql(free)
    expect(db.query('SELECT count(*) AS n FROM budget_charges').get()).toEqual({ n: 0 })
    expect(await free.run(['budget'])).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('no budget is set') })
  })

  test('survives "memory clear"', async () => {
    using at = priced('daily_usd = 0.05')
    await turn(at, [reply])
    expect((await at.run(['memory', 'clear', '--yes'])).code).toBe(0)
    expect(await ofHome(at)).toMatchObject({ spent: 2000 })
  })
})

/** What the calls under way have reserved of the home's money; undefined before there is a database. */
async function held(at: Nest): Promise<number | undefined> {
  try {
    using db = sql(at)
    return db.query<{ held: number }, []>('SELECT coalesce(sum(micros), 0) AS held FROM budget_reservations').get()?.held
  } catch {
    return undefined
  }
}

describe('a conversation and an agent', () => {
  test('a conversation that has spent its budget is over; a new one begins anew', async () => {
    using at = priced('max_conversation_usd = 0.005')
    expect((await turn(at, [reply])).code).toBe(0)
    const second = await turn(at, [{ ...reply, usage: { input_tokens: 1000, output_tokens: 900 } }], ['-c'])
    expect(second.code).toBe(0)
    const third = await turn(at, [reply], ['-c'])
    refused(third, 6, 'error: conversation:', 'limits.max_conversation_usd', 'begin a new conversation, or raise')
    expect((await turn(at, [reply])).code).toBe(0)
    expect((await at.run(['replay', 'last'])).code).toBe(0)
  })

  test('each agent has a day of its own', async () => {
    using at = priced('agent_daily_usd = 0.0048')
    for (const code of [0, 0, 6])
      expect((await turn(at, [{ ...reply, usage: { input_tokens: 1000, output_tokens: 600 } }])).code).toBe(code)
    Bun.spawnSync(['mkdir', '-p', join(at.home, '.braidclaw/agents/other')])
    expect((await turn(at, [reply], ['--agent', 'other'])).code).toBe(0)
    expect((await rows(at)).map(({ scope, spent }) => [scope, spent])).toEqual([
      ['agent:default', 4400],
      ['agent:other', 2000],
    ])
  })
})

describe('a provider over the network', () => {
  const prices = 'price_input = 1\nprice_output = 2\nmax_output_tokens = 1000'
  const wire = (url: string, more: string) =>
    `\n[providers.models.near]\nkind = "openai-compatible"\nbase_url = "${url}"\nmodel = "m"\nmax_retries = 0\n${more}\n`
  const ask = (at: Nest) => at.run(['agent', '-m', 'hi', '--model', 'near/m'])
  const answer = (usage?: object) =>
    document({ id: 'x', model: 'm', choices: [{ index: 0, message: { role: 'assistant', content: 'Hi.' }, finish_reason: 'stop' }], usage })

  test.each([
    ['says nothing of what was used', undefined],
    ['counts less than nothing', { prompt_tokens: -5, completion_tokens: -5 }],
  ])('that %s has used all that was reserved for the call, which is the most that was asked of it', async (_, usage) => {
    using server = startRaw([answer(usage)])
    using at = priced('daily_usd = 1', wire(server.url, prices))
    expect(await ask(at)).toMatchObject({ code: 0, stdout: 'Hi.\n' })
    const state = await ofHome(at)
    expect(state?.reserved).toBe(0)
    expect(state?.spent).toBeGreaterThanOrEqual(2000)
    expect(server.asked[0]).toContain('"max_tokens":1000')
  })

  test('that counts beyond all bounds closes the budget, and what is kept can be read', async () => {
    using server = startRaw([answer({ prompt_tokens: 1e300, completion_tokens: 1 })])
    using at = priced('daily_usd = 1', wire(server.url, prices))
    await ask(at)
    refused(await ask(at), 6, 'limits.daily_usd')
    expect(server.asked).toHaveLength(1)
    expect((await at.run(['replay', 'last'])).code).toBe(0)
  })

  test('whose prices are not known is not asked under a budget of money', async () => {
    using server = startRaw([answer()])
    using at = priced('daily_usd = 1', wire(server.url, ''))
    refused(await ask(at), 6, 'limits.daily_usd cannot hold', '"near"', 'price_input and price_output')
    expect(server.asked).toEqual([])
  })

  test('that refuses costs nothing; one that breaks off in the middle has cost all of it', async () => {
    using refusing = startRaw([document({ error: { message: 'no' } }, '401 Unauthorized')])
    using at = priced('daily_usd = 1', wire(refusing.url, prices))
    expect((await ask(at)).code).toBe(8)
    expect(await ofHome(at)).toMatchObject({ spent: 0, reserved: 0 })
    using breaking = startRaw([streamed(chunk({ content: 'Hel' }), 'cut')])
    using other = priced('daily_usd = 1', wire(breaking.url, prices))
    expect((await ask(other)).code).toBe(8)
    expect((await ofHome(other))?.spent).toBeGreaterThanOrEqual(2000)
  })

  test('that is not there costs nothing', async () => {
    using at = priced('daily_usd = 1', wire('http://127.0.0.1:1/v1', prices))
    expect((await ask(at)).code).toBe(8)
    expect(await ofHome(at)).toMatchObject({ spent: 0, reserved: 0 })
  })
})
