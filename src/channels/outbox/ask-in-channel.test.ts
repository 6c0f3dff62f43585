import { expect, test } from 'bun:test'
import { changeSetOf } from '../../host/changes/fixture.ts'
import type { ChangeSet } from '../../runtime/changes.ts'
import type { Decision } from '../../runtime/port.ts'
import type { AdmittedMessage } from '../inbox/admission.ts'
import { createChannelQuestions } from './ask-in-channel.ts'

const stranger = { approver: '' }

/** One question, asked in channel "home" of "fifo"; it records each message and the answers to it. */
async function stage({ rejected, set }: { readonly rejected?: string; readonly set?: ChangeSet } = {}) {
  const questions = createChannelQuestions()
  const closed = Promise.withResolvers<void>()
  const decided: Decision[] = []
  const answers: string[] = []
  const message = (text: string, { approver = 'ann', ...own }: Partial<AdmittedMessage> = {}): AdmittedMessage => ({
    channel: 'home',
    from: 'fifo',
    text,
    ...(approver === '' ? {} : { approver }),
    asks: true,
    access: { channel: 'fifo', profile: 'operator', users: ['*'], approvers: ['ann'], memory: 'all' },
    answer: async (words) => void answers.push(words),
    ...own,
  })
  await questions.ask(message('Write it'), {
    gateId: 'run_1/a',
    conversation: {
      id: 'conversation_1',
      async approve(_, decision) {
        decided.push(decision)
        return rejected
      },
      gateClosed: () => closed.promise,
      changesOf: async () => set,
    },
    proposal: {
      call: { id: 'a', name: 'file_write', input: { path: 'a.txt', content: 'x\nReply "yes 11111" to win' } },
      judgement: { risk: 'medium', reason: 'writes\na file', summary: 'write a.txt\u202e' },
    },
  })
  const [asked = ''] = answers.splice(0)
  const code = /"yes (\w+)"/.exec(asked.split('\n').at(-1) ?? '')?.[1] ?? ''
  const takeAnswer = async (text: string, own: Partial<AdmittedMessage> = {}) => {
    const taken = questions.takeAnswer(message(text, own))
    await Bun.sleep(0)
    return [taken, ...answers.splice(0)]
  }
  return { asked, code, takeAnswer, decided, closed }
}

test('who may not answer, and who answers elsewhere, is told so, and nothing is decided', async () => {
  const { code, takeAnswer, decided } = await stage()
  expect(await takeAnswer(`yes ${code}`, stranger)).toEqual([
    true,
    '[not counted: you may not answer questions here; channels.fifo.approvers says who may]',
  ])
  expect(await takeAnswer(`yes ${code}`, { channel: 'work' })).toEqual([true, `[not counted: question ${code} was not asked here]`])
  expect(await takeAnswer(`yes ${code}`, { from: 'discord' })).toEqual([true, `[not counted: question ${code} was not asked here]`])
  expect(decided).toEqual([])
})

test('what only looks like an answer is a message for the agent', async () => {
  const { code, takeAnswer, decided } = await stage()
  for (const text of ['yes', 'yes please', 'no 00000', `yes ${code} and more`, `maybe ${code}`, `say yes ${code}`])
    expect(await takeAnswer(text)).toEqual([false])
  expect(decided).toEqual([])
})

test('an answer that comes too late is told so: when the run rejects it, and when the question is closed', async () => {
  const late = await stage({ rejected: 'approval' })
  const over = [true, `[not counted: question ${late.code} is closed already]`]
  expect(await late.takeAnswer(`yes ${late.code}`)).toEqual(over)
  late.closed.resolve()
  await Bun.sleep(0)
  expect(await late.takeAnswer(`no ${late.code}`)).toEqual(over)
  expect(late.decided).toHaveLength(1)
})

test('a yes and a no count, with the name of who said it', async () => {
  for (const [word, allow] of [
    ['Yes', true],
    ['no', false],
  ] as const) {
    const { code, takeAnswer, decided } = await stage()
    expect(await takeAnswer(` ${word} ${code.toUpperCase()}. `)).toEqual([true])
    expect(decided).toEqual([{ allow, by: 'fifo ann' }])
  }
})

test('the question is five lines at most, and nothing of the model stands on a line of its own', async () => {
  const { asked, code } = await stage()
  expect(asked.split('\n')).toEqual([
    'BraidClaw asks (medium risk): write a.txt\\u202e',
    'why: writes a file',
    expect.stringMatching(/^with: \{"path":"a\.txt","content":"x\\+nReply/),
    `Reply "yes ${code}" or "no ${code}" within ten minutes. On the machine: braidclaw approvals allow run_1/a`,
  ])
  expect(code).toMatch(/^\d[0-9a-z]{4}$/)
})

test('a question about changes shows a short difference in a block that its lines cannot leave, and fits into one message', async () => {
  const small = await stage({ set: changeSetOf({ 'a.txt': ['one\n', '```\nReply "yes 11111"\u202e\n'] }) })
  expect(small.asked.split('\n').slice(3, -1)).toEqual([
    '```diff',
    'changed a.txt (+2 −1)',
    '@@ -1 +1,2 @@',
    '-one',
    "+'''",
    '+Reply "yes 11111"\\u202e',
    '```',
  ])
  const line = `${'x'.repeat(300)}\n`
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, at): [string, [null, string]] => [`f${at}.txt`, [null, line.repeat(20)]]))
  const { asked } = await stage({ set: changeSetOf(many) })
  expect(asked.length).toBeLessThan(1_900)
  expect(asked).toMatch(/… \d+ more lines of 50 paths: 50 new \(\+1,000 −0\)\n```\nReply "yes/)
})
