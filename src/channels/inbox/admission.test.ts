import { expect, test } from 'bun:test'
import type { ChannelProfile } from '../../host/access/channel-profile.ts'
import { createAdmission } from './admission.ts'
import type { InboundMessage } from './channel-api.ts'

const profile: ChannelProfile = { channel: 'discord', profile: 'chat', users: ['ada'], approvers: ['bob'], memory: 'own' }

function stage(access: ChannelProfile = profile) {
  const [answers, log]: [string[], string[]] = [[], []]
  const clock = { now: 0 }
  const admission = createAdmission({
    log: (level, event, fields) => void log.push(`${level} ${event} ${fields?.person} ${fields?.messages}`),
    now: () => clock.now,
  })
  const admit = (person: string | undefined, more: Partial<InboundMessage> = {}) =>
    admission.admit(access, {
      ...{ channel: 'general', text: 'hi', from: 'discord', answer: async (words: string) => void answers.push(words) },
      ...(person === undefined ? {} : { person }),
      ...more,
    })
  return { admit, answers, log, clock }
}

test('a refused person is told once in ten minutes, and the log counts what came meanwhile', () => {
  const { admit, answers, log, clock } = stage()
  for (const _ of [1, 2, 3]) expect(admit('eve')).toBeUndefined()
  expect([answers.length, log]).toEqual([1, ['warn person refused eve 1']])
  clock.now = 600_000
  expect(admit('eve')).toBeUndefined()
  expect([answers.length, log.at(-1)]).toEqual([2, 'warn person refused eve 3'])
})

test('a message without an author, or with the name or the place of a listed person, is refused', () => {
  const { admit, answers } = stage()
  for (const person of [undefined, 'Ada', 'ada ', 'ada\n', '', '*']) expect([person, admit(person)]).toEqual([person, undefined])
  expect(admit('eve', { from: 'ada', channel: 'ada', conversation: 'ada' })).toBeUndefined()
  expect(answers.join('\n')).not.toContain('ada\n')
})

test('a crowd of strangers is answered twenty times at most', () => {
  const { admit, answers, log } = stage()
  for (let number = 0; number < 5_000; number += 1) admit(`eve ${number}`)
  expect(answers).toHaveLength(20)
  expect(log).toHaveLength(5_000)
})

test('each person has a conversation of their own in each place, and no name of a place or person runs into another', () => {
  const { admit } = stage({ ...profile, users: ['*'] })
  const names = [
    admit('a', { channel: 'x y' })?.conversation,
    admit('y a', { channel: 'x' })?.conversation,
    admit('a', { channel: 'x%20y' })?.conversation,
    admit('b', { channel: 'x y' })?.conversation,
    admit('a', { channel: 'x y', conversation: 'discord x%20y b' })?.conversation,
  ]
  expect(names).toEqual(['discord x%20y a', 'discord x y%20a', 'discord x%2520y a', 'discord x%20y b', 'discord x%20y a'])
})

test('another topic is another conversation, whatever memory the channel has', () => {
  const all: ChannelProfile = { channel: 'telegram', profile: 'operator', users: ['*'], approvers: [], memory: 'all' }
  const names = [profile, all, { ...all, tools: ['time'] }].map((access) => {
    const { admit } = stage({ ...access, users: ['*'] })
    return [admit('a', { topic: '2' })?.conversation, admit('a', { topic: '2', conversation: 'telegram 5' })?.conversation]
  })
  expect(names).toEqual([
    ['discord general a 2', 'discord general a 2'],
    [undefined, 'telegram 5 2'],
    ['telegram general 2', 'telegram 5 2'],
  ])
})

test('a channel with limits never shares the conversation that has the rights of the operator', () => {
  const open: ChannelProfile = { channel: 'fifo', profile: 'operator', users: ['*'], approvers: [], memory: 'all' }
  expect(stage(open).admit('me')?.conversation).toBeUndefined()
  for (const limit of [{ tools: ['time'] }, { level: 'supervised' }, { folder: '/chat' }] as const)
    expect(stage({ ...open, ...limit }).admit('me', { channel: 'me' })?.conversation).toBe('fifo me')
})

test('a question is put where an approver reads it: in a shared place, or to the approver alone', () => {
  const { admit } = stage({ ...profile, users: ['*'] })
  expect(admit('ada')).toMatchObject({ asks: true })
  expect(admit('ada')).not.toHaveProperty('approver')
  expect(admit('bob')).toMatchObject({ asks: true, approver: 'bob' })
  expect(admit('ada', { channel: 'ada' })).toMatchObject({ asks: false })
  expect(admit('bob', { channel: 'bob' })).toMatchObject({ asks: true, approver: 'bob' })
})
