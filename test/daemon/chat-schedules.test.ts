/** The agent schedules answers to its own chat, through the real executable against a Bot API on loopback. */

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { type Daemon, daemon, stopping } from '../support/daemon.ts'
import { ADA, type FakeTelegram, startTelegram, TOKEN } from '../support/telegram/fake.ts'
import { call, home, scripted } from '../support/turns.ts'
import { until } from '../support/until.ts'

const BOB = { id: 5_000_000_002, is_bot: false, first_name: 'Bob' }

function telegramHome(fake: Pick<FakeTelegram, 'api'>, users = [String(ADA.id), String(BOB.id)], more = ''): Nest {
  return home(`[channels.telegram]\nenabled = true\napi = "${fake.api}"\nusers = ${JSON.stringify(users)}\n${more}`)
}

async function listening(at: Nest, replies: readonly object[]): Promise<Daemon & AsyncDisposable> {
  const agent = stopping(await daemon(at, [], { env: { TELEGRAM_BOT_TOKEN: TOKEN, ...scripted(at, replies).env } }))
  await agent.says('channel started channel=telegram')
  return agent
}

async function ask(fake: FakeTelegram, said: Parameters<FakeTelegram['say']>[0]): Promise<string> {
  const before = fake.seen.sent.length
  fake.say(said)
  await until(() => fake.seen.sent.length > before)
  return fake.texts()[before] ?? ''
}

/** What the tool said in the runs of this home, oldest first. */
function outcomes(at: Nest): readonly string[] {
  using database = new Database(join(at.home, '.braidclaw/memory.sqlite'), { readonly: true })
  const rows = database.query<{ said: string }, []>(
    "SELECT coalesce(body ->> '$.outcome.error', body ->> '$.outcome.output') AS said FROM journal WHERE type = 'tool.done' ORDER BY seq",
  )
  return rows.all().map(({ said }) => said)
}

async function scheduled(at: Nest) {
  const { stdout } = await at.run(['schedule', 'list', '--json'])
  return JSON.parse(stdout)
}

const nine = { message: 'Remind her of the pills.', cron: '0 9 * * *', zone: 'Europe/Berlin' }

test('where everybody may talk the model has no tool schedule, unless the operator names it; a scheduled run never has it', async () => {
  using fake = startTelegram()
  using open = telegramHome(fake, ['*'])
  await using _open = await listening(open, [call('schedule', nine), { text: 'I cannot.' }])
  expect(await ask(fake, 'Every morning, please')).toStartWith('I cannot.')
  expect(await scheduled(open)).toEqual([])
  await _open.stop()
  using named = telegramHome(fake, ['*'], 'tools_allow = ["schedule"]\n')
  const due = call('schedule', { message: 'now', at: 'in 1s' })
  await using _named = await listening(named, [due, { text: 'Yes.' }, call('schedule', nine), { text: 'At the time.' }])
  expect(await ask(fake, 'In a second, please')).toBe('Yes.')
  await until(() => fake.seen.sent.length >= 3)
  expect(fake.texts().at(-1)).toStartWith('At the time.')
  expect(await scheduled(named)).toMatchObject([{ state: 'done', last: { state: 'bad' } }])
})

test('a reminder is sent to the chat that asked for it when it is due, after a restart too; its person lists and removes it, and others cannot', async () => {
  using fake = startTelegram()
  using at = telegramHome(fake)
  const soon = call('schedule', { message: 'Say that tea is ready.', at: 'in 2s' })
  const first = await listening(at, [call('schedule', nine), { text: 'At nine, every day.' }, soon, { text: 'In two seconds.' }])
  expect(await ask(fake, 'Remind my mother of her pills at nine')).toBe('At nine, every day.')
  expect(await ask(fake, 'And tea in two seconds')).toBe('In two seconds.')
  await first.kill()
  const [morning, tea] = await scheduled(at)
  expect(morning).toMatchObject({
    when: 'cron 0 9 * * *',
    zone: 'Europe/Berlin',
    channel: 'telegram',
    autonomy: 'readonly',
    madeInChat: true,
  })
  expect(tea).toMatchObject({ kind: 'at', state: 'active' })
  await using _second = await listening(at, [
    { text: 'Tea is ready!' },
    call('schedule', { remove: morning.name }),
    { text: 'I could not.' },
  ])
  await until(() => fake.texts().includes('Tea is ready!'))
  expect(fake.seen.sent.at(-1)?.chat).toBe(ADA.id)
  using database = new Database(join(at.home, '.braidclaw/memory.sqlite'), { readonly: true })
  const labels = database.query("SELECT label FROM read_labels JOIN runs USING (conversation_id) WHERE channel = 'schedule'")
  expect(labels.all()).toContainEqual({ label: 'reads_untrusted' })
  expect(await ask(fake, { from: BOB, text: 'Remove hers' })).toStartWith('I could not.')
  expect(outcomes(at).at(-1)).toContain(`this chat has no schedule "${morning.name}"`)
  expect(await ask(fake, { from: BOB, text: '/schedules' })).toBe('this chat has no schedules')
  expect(await ask(fake, { from: BOB, text: `/schedules remove ${morning.name}` })).toContain('this chat has no schedule')
  await ask(fake, '/new')
  const listed = await ask(fake, '/schedules')
  expect(listed).toStartWith(`${morning.name}: next `)
  expect(listed).toEndWith('09:00 Europe/Berlin (cron 0 9 * * *): Remind her of the pills.')
  expect(await ask(fake, `/schedules remove ${morning.name}`)).toBe(`removed ${morning.name}`)
  expect(await scheduled(at)).toMatchObject([{ name: tea.name, state: 'done', last: { state: 'good' } }])
})

test('a chat has ten schedules at most, a quarter of an hour apart, and each wrong time is said', async () => {
  using fake = startTelegram()
  using at = telegramHome(fake)
  const wrong = [
    { message: 'too often', every: '5m' },
    { message: 'too often', cron: '0,10 9 * * *' },
    { message: 'when?' },
    { message: 'past', at: '2020-01-01 09:00' },
    { message: 'where?', at: '09:00', zone: 'Mars/Base' },
  ]
  const all = (inputs: readonly object[]) => ({ tool_calls: inputs.map((input) => ({ name: 'schedule', arguments: input })) })
  const replies = [all(wrong), all(Array.from({ length: 10 }, () => nine)), all([nine]), all([{}]), { text: 'Done.' }]
  await using _agent = await listening(at, replies)
  expect(await ask(fake, 'All of them')).toBe('Done.')
  expect(await scheduled(at)).toHaveLength(10)
  const said = outcomes(at)
  for (const words of [
    '15 minutes are the shortest',
    '15 minutes are the shortest',
    'exactly one of at, every and cron',
    'is past',
    'zone "Mars/Base"',
  ])
    expect(said.slice(0, 5).join('\n')).toContain(words)
  expect(said[15]).toContain('this chat has 10 schedules and 10 are the limit')
  expect(said[16]?.split('\n')).toHaveLength(10)
})
