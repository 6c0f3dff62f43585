/** Kills the gateway while many talk to it: what it had answered stays, and whoever follows its events misses and doubles none. */

import { expect, test } from 'bun:test'
import { echoModel } from '../support/echo-model.ts'
import { followEvents } from '../support/event-follower.ts'
import { type Gateway, gateway, tokenOf } from '../support/gateway.ts'
import { home } from '../support/turns.ts'
import { until } from '../support/until.ts'

type Answered = { readonly word: string; readonly conversation: string; readonly run: string; readonly receipts: readonly string[] }

const clients = 16

test('kill -9 under load: nothing answered is lost, the chain holds, and followers resume without a gap or a double', async () => {
  using model = echoModel(20)
  using at = home(model.toml)
  at.file('notes.txt', 'Buy milk.')
  const token = await tokenOf(at, 'test', '--scope', 'admin')
  const begin = () => gateway(at, [...model.args], { env: model.env, token })
  const state: { server: Gateway; over: boolean } = { server: await begin(), over: false }
  const answered: Answered[] = []
  const follower = followEvents(() => state.server.url, token)

  async function talk(client: number): Promise<void> {
    let conversation: string | undefined
    for (let turn = 0; !state.over; turn += 1) {
      const word = `w${client}x${turn}z`
      const body = { message: `read ${word}`, ...(conversation === undefined ? {} : { conversation_id: conversation }) }
      const answer = await state.server.ask('/chat', body).catch(() => undefined)
      if (answer?.status !== 200) await Bun.sleep(30)
      else {
        conversation = answer.body.conversation_id
        expect(answer.body.text).toBe(`I read ${word}`)
        answered.push({ word, conversation: answer.body.conversation_id, run: answer.body.run_id, receipts: answer.body.receipts })
      }
    }
  }

  const talking = Promise.all(Array.from({ length: clients }, (_, client) => talk(client)))
  for (let death = 0; death < 3; death += 1) {
    const enough = answered.length + 2 * clients
    await until(() => answered.length >= enough)
    await state.server[Symbol.asyncDispose]()
    state.server = await begin()
  }
  const enough = answered.length + clients
  await until(() => answered.length >= enough)
  state.over = true
  await talking
  await using server = state.server
  const { runs } = (await server.ask('/runs?limit=1')).body
  await until(() => follower.seen.some(({ type, text }) => type === 'run_ended' && text.includes(runs[0].id)))
  await follower.stop()

  // Whoever asks for everything afterwards gets the same.
  const whole = followEvents(() => server.url, token)
  await until(() => whole.seen.length >= follower.seen.length)
  await whole.stop()
  expect(follower.breaks()).toBeGreaterThanOrEqual(3)
  expect(follower.seen.map(({ id }) => id)).toEqual(whole.seen.map(({ id }) => id))
  expect(new Set(follower.seen.map(({ id }) => id)).size).toBe(follower.seen.length)

  expect(answered.length).toBeGreaterThanOrEqual(7 * clients)
  expect(await lost(server, answered)).toEqual([])
  expect(new Set(answered.flatMap(({ receipts }) => receipts)).size).toBe(answered.length)
  expect((await server.ask('/receipts/verify', {})).body).toMatchObject({ ok: true })
  const ended = new Set(whole.seen.filter(({ type }) => type === 'run_ended').map(({ text }) => JSON.parse(text).runId))
  expect(answered.filter(({ run }) => !ended.has(run))).toEqual([])
  expect((await server.stop()).code).toBe(0)
  expect((await at.run(['receipt', 'verify'])).code).toBe(0)
}, 120_000)

/** Returns what was answered and is not in the record. */
async function lost(server: Gateway, answered: readonly Answered[]): Promise<string[]> {
  const conversations = Map.groupBy(answered, ({ conversation }) => conversation)
  const missing = await Promise.all(
    [...conversations].map(async ([id, turns]) => {
      const { messages } = (await server.ask(`/conversations/${id}?limit=500`)).body
      const said = new Set(messages.map(({ content }: { content: string }) => content))
      return turns.filter(({ word }) => !said.has(`read ${word}`) || !said.has(`I read ${word}`)).map(({ word }) => word)
    }),
  )
  return missing.flat()
}
