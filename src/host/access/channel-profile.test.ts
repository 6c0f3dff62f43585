import { expect, test } from 'bun:test'
import { configOf } from '../../config/load.fixture.ts'
import { homePaths } from '../../config/paths.ts'
import { policyVersion } from '../../security/policy.ts'
import { autonomyLevels } from '../../security/settings.ts'
import { allowingToo, policyOf } from '../setup/effective-policy.ts'
import { type ChannelProfile, channelProfileOf, narrowSetup } from './channel-profile.ts'

const chat: ChannelProfile = { channel: 'discord', profile: 'chat', users: ['1'], approvers: [], memory: 'own' }
const paths = homePaths('/h')

test('the level of a channel is never above the own level, whichever is higher', () => {
  for (const [own, ownRank] of autonomyLevels.map((level, rank) => [level, rank] as const))
    for (const [level, rank] of autonomyLevels.map((each, at) => [each, at] as const)) {
      const { config } = narrowSetup({ config: configOf({ user: `[security]\nautonomy = "${own}"\n` }) }, { ...chat, level })
      expect(config.security.autonomy).toBe(autonomyLevels[Math.min(ownRank, rank)] ?? 'readonly')
    }
})

test('a yes in advance to every medium risk does not reach people in a chat', () => {
  const config = configOf({ user: '[security]\napprove_all_medium = true\n' })
  expect(narrowSetup({ config }, { ...chat, level: 'supervised' }).config.security.approveAllMedium).toBe(false)
  expect(narrowSetup({ config }, undefined).config.security.approveAllMedium).toBe(true)
})

test('the tools of a channel are all there is: naming an executable for the terminal does not add it', () => {
  const setup = narrowSetup({ config: configOf({ user: '[channels.cli]\ntools_allow = ["shell"]\n' }) }, { ...chat, tools: ['time'] })
  const policy = allowingToo(policyOf(setup.config, paths, { HOME: '/u' }, setup.access), ['deploy'])
  expect(policy.toolsAllow).toEqual(['time'])
  expect(policy.channel).toEqual({ name: 'discord', memory: 'own', tools: ['time'] })
})

test('a policy without a channel keeps the version that earlier approvals are bound to', () => {
  const policy = policyOf(configOf({ user: '' }), paths, { HOME: '/u' })
  expect('channel' in policy).toBe(false)
  expect(policyVersion({ ...policy, channel: undefined })).toBe(policy.version)
  expect(policyVersion({ ...policy, channel: { name: 'discord', memory: 'own' } })).not.toBe(policy.version)
})

test('what a profile leaves out comes from its kind, and an unknown channel is a chat for nobody', () => {
  const config = configOf({ user: '' })
  expect(channelProfileOf(config, { name: 'new' })).toEqual({
    ...{ channel: 'new', profile: 'chat', users: [], approvers: [], memory: 'own' },
    ...{ tools: ['time', 'memory_search', 'schedule'], level: 'readonly', schedules: true },
  })
  for (const [users, people] of [
    [['*'], undefined],
    [['1'], { byToken: true }],
  ] as const) {
    const open = channelProfileOf(configOf({ user: `[channels.telegram]\nusers = ${JSON.stringify(users)}\n` }), {
      name: 'telegram',
      people,
    })
    expect([open.tools, open.schedules]).toEqual([['time', 'memory_search'], undefined])
  }
  expect(channelProfileOf(config, { name: 'fifo', people: { profile: 'operator', users: ['*'] } })).toEqual({
    ...{ channel: 'fifo', profile: 'operator', users: ['*'], approvers: [], memory: 'all' },
  })
})
