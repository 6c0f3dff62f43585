/** Tests the settings of background services: Discord, and the provider behind FIFOs. */

import { expect, test } from 'bun:test'
import { configOf, minimum, problemsOf } from './load.fixture.ts'

const one = (user: string, env = {}) => problemsOf({ user, env }).join('\n')

test('a channel id that is none is refused, in the file and in the variable', () => {
  expect(one(`${minimum}[channels.discord]\nchannel_ids = ["#general"]\n`)).toContain('17 to 20 digits')
  expect(one(minimum, { DISCORD_CHANNEL_ID: 'general' })).toContain('DISCORD_CHANNEL_ID channels.discord.channel_ids')
})

test('a person is an id or everyone, and an approver is never everyone', () => {
  expect(one(`${minimum}[channels.discord]\nusers = ["ada"]\n`)).toContain('17 to 20 digits')
  expect(one(`${minimum}[channels.discord]\nusers = ["ada"]\n`)).toContain('or "*" for everyone')
  expect(one(`${minimum}[channels.discord]\napprovers = ["*"]\n`)).toContain('17 to 20 digits')
  expect(configOf({ user: `${minimum}[channels.discord]\nusers = ["*"]\n` }).channels.discord?.users).toEqual(['*'])
})

test('a token in the file is refused: it names a variable', () => {
  expect(one(`${minimum}[channels.discord]\ntoken = "MTI3-secret"\n`)).not.toContain('MTI3-secret')
  expect(one(`${minimum}[channels.discord]\ntoken_env = "mti3 secret"\n`)).toContain('the NAME of an environment variable')
})

test("a project's file cannot switch Discord on or say where it is", () => {
  const project = '[channels.discord]\nenabled = true\napi = "https://evil.example"\n'
  const problems = problemsOf({ user: minimum, project }).join('\n')
  expect(problems).toContain('channels.discord.enabled')
  expect(problems).toContain('channels.discord.api')
})

test('one variable holds one channel or several', () => {
  const ids = ['1234567890123456789', '1234567890123456780']
  const of = (text: string) => configOf({ user: minimum, env: { DISCORD_CHANNEL_ID: text } }).channels.discord?.channelIds
  expect(of(ids[0] ?? '')).toEqual([ids[0] ?? ''])
  expect(of(ids.join(','))).toEqual(ids)
})

test('a provider of kind "fifo" has a folder, a model and a time limit of its own, and no address', () => {
  const fifo = '[providers.models.f]\nkind = "fifo"\n'
  expect(configOf({ user: minimum + fifo }).providers.models.f).toMatchObject({
    kind: 'fifo',
    dir: '/tmp/planckclaw',
    model: 'claude-haiku-4-5-20251001',
  })
  expect(one(`${minimum}${fifo}base_url = "http://127.0.0.1"\n`)).toContain('base_url')
})
