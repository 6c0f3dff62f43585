import { expect, test } from 'bun:test'
import { collect, stage } from '../../test/support/agent.ts'
import { createRedactor } from '../security/redaction/redact.ts'
import type { Message } from './port.ts'

const asks = { replies: [{ calls: [{ id: 'a' }] }, { text: 'over' }] }

test('while a record is being written, nothing of it is carried out or shown', async () => {
  const { agent, requests } = stage({ ...asks, commit: () => new Promise(() => {}) })
  const seen: string[] = []
  const reading = (async () => {
    for await (const event of agent.run('go')) seen.push(event.type)
  })()
  await Promise.race([reading, Bun.sleep(50)])
  expect([seen, requests, agent.ending()]).toEqual([[], [], undefined])
})

test('while a record is being written, a cancel aborts what runs at once, and what begins after it is aborted from the start', async () => {
  const signals: AbortSignal[] = []
  const held = Promise.withResolvers<void>()
  const { agent } = stage({
    ...asks,
    act: async (_act, signal) => {
      signals.push(signal)
      return { status: 'failed', output: '', error: 'aborted' }
    },
    commit: (batch) => (batch.some(({ kind }) => kind === 'intent') ? held.promise : Promise.resolve()),
  })
  const running = collect(agent, 'go')
  await Bun.sleep(20)
  expect(signals).toEqual([])
  agent.cancel()
  held.resolve()
  await running
  expect(signals.map(({ aborted }) => aborted)).toEqual([true])
  expect(agent.ending()?.stop).toBe('cancelled')
})

test('decisions that arrive while a record is being written wait, and only the first counts', async () => {
  const answers: unknown[] = []
  const { agent, acted } = stage({ ...asks, verdicts: { a: { verdict: 'ask' } }, commit: () => Bun.sleep(5) })
  await collect(agent, 'go', (event) => {
    if (event.type !== 'approval_gate') return
    for (const by of ['ann', 'eve']) void agent.approve(event.gateId, { allow: true, by }).then((rejected) => answers.push(rejected))
  })
  expect([answers, acted]).toEqual([[undefined, 'approval'], ['a']])
})

function hiding() {
  const redactor = createRedactor()
  redactor.register('hidden')
  return redactor
}

test('a call that would be another one without its secret never runs, whatever the gate says of it', async () => {
  const { agent, log, requests, acted } = stage({
    replies: [
      {
        calls: [
          { id: 'a', input: { key: 'hidden' } },
          { id: 'b', input: { key: 'shown' } },
        ],
      },
      { text: 'ok' },
    ],
    redact: hiding().json,
  })
  const events = await collect(agent, 'go')
  expect([acted, log.filter((line) => line.startsWith('denied'))]).toEqual([['b'], ['denied a by redaction.secret']])
  expect(JSON.stringify([events, requests])).not.toContain('hidden')
  expect(JSON.stringify(requests[1])).toContain('[redacted]')
})

const saidIn = ({ messages }: { readonly messages: readonly Message[] }) =>
  messages.map((message) => (message.role === 'user' ? `user ${message.content}` : message.role)).join(', ')

test('what a person says while the model answers or a call runs comes after the results of the round, in its order', async () => {
  const answers: boolean[] = []
  const { agent, requests, log } = stage({
    replies: [{ pieces: 1, calls: [{ id: 'a' }, { id: 'b' }] }, { text: 'over' }],
    commit: () => Bun.sleep(2),
    act: async ({ id }) => {
      const said = agent.steer(`during ${id}`).then((isIn) => answers.push(isIn))
      if (id === 'a') await Promise.race([said, Bun.sleep(20)])
      return { status: 'allowed', output: id }
    },
  })
  await collect(agent, 'go', (event) => {
    if (event.type === 'text' && event.isPartial) void agent.steer('in the reply').then((isIn) => answers.push(isIn))
  })
  expect(requests.map(saidIn)).toEqual(['user go', 'user go, assistant, tool, tool, user in the reply, user during a, user during b'])
  expect([answers, log.filter((line) => line === 'steer')]).toEqual([
    [true, true, true],
    ['steer', 'steer', 'steer'],
  ])
})

test('what a person says too late is in no request and not on record', async () => {
  const answers: boolean[] = []
  const { agent, requests, log } = stage({ replies: [{ pieces: 1, text: 'over' }], commit: () => Bun.sleep(2) })
  await collect(agent, 'go', (event) => {
    if (event.type === 'text') void agent.steer('late').then((isIn) => answers.push(isIn))
  })
  answers.push(await agent.steer('later'))
  expect([answers, requests.length, log.includes('steer')]).toEqual([[false, false, false], 1, false])
})

test('a cancel leaves a message to the next turn', async () => {
  const { agent } = stage({
    replies: [{ calls: [{ id: 'a' }] }],
    act: (_, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve({ status: 'failed', output: '' }))),
  })
  const answers: Promise<boolean>[] = []
  await collect(agent, 'go', async (event) => {
    if (event.type !== 'tool_use') return
    answers.push(agent.steer('wait'))
    await Bun.sleep(5)
    agent.cancel()
  })
  expect(await Promise.all(answers)).toEqual([false])
})

test('what comes between the last result and the request that it brings about waits for the next round', async () => {
  const answers: boolean[] = []
  const { agent, log } = stage({
    replies: [{ calls: [{ id: 'a' }] }, { text: 'over' }],
    commit: async (batch) => {
      if (batch.some((entry) => entry.kind === 'external' && entry.event.type === 'tool.done'))
        void agent.steer('between').then((isIn) => answers.push(isIn))
    },
  })
  await collect(agent, 'go')
  expect([answers, log.includes('steer')]).toEqual([[false], false])
})
