/** Asks the people in a channel to approve a call that was requested there; only configured approvers may answer. */

import type { Conversation } from '../../host/api.ts'
import { type Fold, setLines, totalsOf } from '../../host/changes/change-lines.ts'
import { escapeHidden } from '../../kit/escape.ts'
import { createId, sha256 } from '../../kit/sha256.ts'
import { count, cut, flat, visible } from '../../kit/text.ts'
import type { ChangeSet } from '../../runtime/changes.ts'
import type { Proposal } from '../../runtime/event.ts'
import type { AdmittedMessage } from '../inbox/admission.ts'

export type ChannelQuestion = {
  readonly conversation: Pick<Conversation, 'id' | 'approve' | 'gateClosed' | 'changesOf'>
  readonly gateId: string
  readonly proposal: {
    readonly call: Proposal['call']
    readonly judgement: Pick<Proposal['judgement'], 'reason' | 'summary'> & { readonly risk: string }
  }
}

export type ChannelQuestions = {
  /** Resolves when the question was sent; the answer arrives as a later message. */
  ask(message: AskedPerson, question: ChannelQuestion): Promise<void>
  /** @returns true when the message was an answer to a question; the agent must then not get it */
  takeAnswer(message: AdmittedMessage): boolean
}

type AskedPerson = Pick<AdmittedMessage, 'channel' | 'from' | 'answer'>
type OpenQuestion = ChannelQuestion & Omit<AskedPerson, 'answer'>

/** How many codes of closed questions are remembered as codes. */
const remembered = 1_000

export function createChannelQuestions(): ChannelQuestions {
  const open = new Map<string, OpenQuestion>()
  const over = new Set<string>()

  function forget(code: string): void {
    open.delete(code)
    over.add(code)
    for (const old of over) if (over.size > remembered) over.delete(old)
  }

  /** A question that is asked again after a restart has its code again. */
  function newCode(gateId: string, times = 0): string {
    const code = codeOf(Buffer.from(sha256(`${gateId} ${times}`), 'hex').subarray(0, 8))
    return open.has(code) || over.has(code) ? newCode(gateId, times + 1) : code
  }

  async function decide(message: AdmittedMessage, code: string, allow: boolean): Promise<void> {
    const { channel, from, approver, answer } = message
    const question = open.get(code)
    if (!question) return answer(`[not counted: question ${code} is closed already]`)
    if (question.channel !== channel || question.from !== from) return answer(`[not counted: question ${code} was not asked here]`)
    if (approver === undefined) return answer(`[not counted: you may not answer questions here; channels.${from}.approvers says who may]`)
    const rejected = await question.conversation.approve(question.gateId, { allow, by: `${from} ${visible(approver)}` })
    if (rejected !== undefined) await answer(`[not counted: question ${code} is closed already]`)
  }

  return {
    async ask(message, question) {
      const code = newCode(question.gateId)
      const { channel, from } = message
      open.set(code, { ...question, channel, from })
      const closed = question.conversation.gateClosed(question.gateId).then(() => forget(code))
      await message.answer(questionText(code, question, await question.conversation.changesOf(question.gateId)), {
        closed,
        conversationId: question.conversation.id,
      })
    },
    takeAnswer(message) {
      const [, word = '', code = ''] = /^\s*(yes|no)\s+([0-9a-z]{5})[.!]?\s*$/i.exec(message.text) ?? []
      const normalized = code.toLowerCase()
      if (!open.has(normalized) && !over.has(normalized)) return false
      void decide(message, normalized, word.toLowerCase() === 'yes')
      return true
    },
  }
}

/** Makes a code of five characters that is easy to type. The first is a digit, so that no word looks like a code. */
function codeOf(random: Uint8Array): string {
  const [, letters = ''] = createId('q', random).split('_')
  return `${(random[0] ?? 0) % 10}${letters.slice(0, 4)}`
}

/** Formats the question as one piece of text, in which no line of the model's text can look like a line of ours. */
function questionText(code: string, { gateId, proposal: { call, judgement } }: ChannelQuestion, set: ChangeSet | undefined): string {
  return [
    ...questionLines({ call, judgement }, set),
    `Reply "yes ${code}" or "no ${code}"${call.name.startsWith('sop.') ? '' : ' within ten minutes'}. On the machine: braidclaw approvals allow ${gateId}`,
  ].join('\n')
}

/** Says what a call wants to do, and why that is asked. */
export function questionLines({ call, judgement }: ChannelQuestion['proposal'], set: ChangeSet | undefined): readonly string[] {
  const { risk, reason, summary } = judgement
  return [
    `BraidClaw asks (${risk} risk): ${oneLine(summary)}`,
    `why: ${oneLine(reason)}`,
    ...(Object.keys(call.input).length === 0 ? [] : [`with: ${cut(visible(JSON.stringify(call.input)), set ? 200 : 800)}`]),
    ...(set ? [differenceText(set)] : []),
  ]
}

const chatFold: Fold = { linesPerFile: 12, lines: 24, files: 8, width: 100 }
/** Leaves room for the rest of the question in the 2,000 characters that Discord allows. */
const differenceLimit = 1_000

/** A code block of the first lines; what does not fit is counted. */
function differenceText(set: ChangeSet): string {
  const lines = setLines(set, chatFold, false).map(({ text }) => text.replaceAll('```', "'''"))
  const ends = lines.map((_, at) => lines.slice(0, at + 1).join('\n').length)
  const shown = ends.filter((end) => end <= differenceLimit).length
  const rest = shown < lines.length ? `\n… ${count(lines.length - shown, 'more line')} of ${totalsOf(set)}` : ''
  return `\`\`\`diff\n${lines.slice(0, shown).join('\n')}${rest}\n\`\`\``
}

function oneLine(words: string): string {
  return flat(escapeHidden(words))
}
