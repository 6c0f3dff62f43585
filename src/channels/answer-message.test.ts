import { expect, test } from 'bun:test'
import type { Conversation, InterruptedTurn } from '../host/api.ts'
import { createAnswers } from './answer-message.ts'
import type { AdmittedMessage } from './inbox/admission.ts'

const continues = { run: 'run_1', asked: 'go', proposals: [] }
const turn: InterruptedTurn = { calls: 1, diedOf: 'its process ended', unknown: [], continueWith: () => ({ prompt: 'check', continues }) }

/** Answers one message over a conversation whose last turn is this; returns what was run and answered. */
async function answered(text: string, interrupted: InterruptedTurn | string, access = { profile: 'chat' }) {
  const [runs, answers]: [unknown[], string[]] = [[], []]
  const conversation: Partial<Conversation> = {
    interrupted: async () => interrupted,
    commands: async () => undefined,
    async *run(message, _signal, continues, start) {
      runs.push([typeof message === 'string' ? message : message.text, continues, ...(start?.calls ?? [])])
      yield { type: 'done', stopReason: 'end_turn', result: 'here it is' }
    },
    ending: () => ({ stop: 'end_turn', code: 'answered', message: '' }),
    unanswered: () => [],
  }
  const { take } = createAnswers({
    log: () => {},
    answering: async () => ({ conversation: conversation as Conversation, compact: async () => {} }),
    schedules: () => Promise.reject(new Error('not asked')),
    sops: async () => undefined,
    troubles: () => [{ channel: 'telegram', state: 'failed', why: 'the reason', since: 0 }],
    questions: {} as Parameters<typeof createAnswers>[0]['questions'],
  })
  await take({
    channel: 'c',
    from: 'test',
    text,
    asks: false,
    access,
    answer: async (said: string) => void answers.push(said),
  } as unknown as AdmittedMessage)
  return { runs, answers }
}

test('/continue in a chat goes on with the interrupted turn, and any other text is a message', async () => {
  expect(await answered(' /continue ', turn)).toEqual({ runs: [['check', continues]], answers: ['here it is'] })
  expect(await answered('/continue it', turn)).toEqual({ runs: [['/continue it', undefined]], answers: ['here it is'] })
})

test('"@" and "!" in a message of a channel are only text', async () => {
  for (const text of ['what is in @answer-message.test.ts and @/etc/hostname?', '! ls', '!ls'])
    expect((await answered(text, turn, { profile: 'operator' })).runs).toEqual([[text, undefined]])
})

test('/continue says why nothing goes on', async () => {
  const { runs, answers } = await answered('/continue', 'its last turn was answered')
  expect([runs, answers]).toEqual([[], ['[nothing to continue: its last turn was answered]']])
})

test('/status says which channels do not work, and why only where the operator talks', async () => {
  const said = 'telegram: failed since 1970-01-01T00:00:00.000Z: '
  expect(await answered('/status', turn)).toEqual({ runs: [], answers: [`${said}the log says why`] })
  expect(await answered('/status', turn, { profile: 'operator' })).toEqual({ runs: [], answers: [`${said}the reason`] })
})
