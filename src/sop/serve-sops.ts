/** Runs procedures in a process that stays: those that were begun over HTTP, in a chat or by a schedule, and those whose question was answered. */

import type { Conversation, Host } from '../host/api.ts'
import type { HostRecords } from '../host/contract/records-api.ts'
import { createHomePoll } from '../host/events/home-poll.ts'
import { FailureError } from '../host/failure.ts'
import { within } from '../kit/abort.ts'
import { errorText } from '../kit/errors.ts'
import { cut, flat, visible } from '../kit/text.ts'
import type { Approval } from '../memory/approval-table.ts'
import type { SopRunRow } from '../memory/journal/sop-store.ts'
import type { Proposal } from '../runtime/event.ts'
import { findSop, findSops, type SopFile, sopTools } from './find-sops.ts'
import { answerOfRun, beginSop, type RunPlace, runSop, type SopTurns, showRun } from './run-sop.ts'
import { enabledSop, namedByMessage, triggerCommand } from './triggers.ts'

type Served = Pick<SopTurns, 'takeTurn' | 'onGate' | 'options'>

const lookMs = 1_000
const longestMs = 60_000
/** More runs than this wait for their turn. */
const mostAtOnce = 8

/** The chats of this process. */
export type SopChats = {
  readonly channels: ReadonlyMap<string, { send(to: string, text: string): Promise<void> }>
  /** Takes answers to a question from the chat, and sends it there unless it was sent before. */
  ask(chat: SopChat, question: SopQuestion, wasSent: boolean): Promise<void>
}

type SopChat = { readonly channel: string; readonly recipient: string }
type SopQuestion = {
  readonly gateId: string
  readonly conversation: Pick<Conversation, 'id' | 'approve' | 'gateClosed' | 'changesOf'>
  readonly proposal: { readonly call: Proposal['call']; readonly judgement: Pick<Approval, 'risk' | 'reason' | 'summary'> }
}

export async function serveSops(host: Host, turns: Served, chats?: SopChats): Promise<{ close(graceMs: number): Promise<void> }> {
  const { log } = host.setup
  const records = await host.records()
  const running = new Map<string, Promise<unknown>>()
  const stop = new AbortController()

  async function start(id: string): Promise<void> {
    try {
      await records.sops.recover()
      const { name, state, why } = await runSop(id, { ...turns, host, records, signal: stop.signal, stays: true })
      log('info', 'procedure at rest', { run: id, name, state, ...(why === '' ? {} : { why }) })
    } catch (error) {
      log('error', 'procedure not run', { run: id, why: errorText(error) })
    }
  }

  const tell = chats ? createTeller(host, records, chats) : () => {}
  const seen = { version: '', at: 0 }
  function look(): void {
    const version = records.sops.runs.version()
    // The clock alone ends a question that nobody answers.
    if (version === seen.version && Math.abs(Date.now() - seen.at) < longestMs) return
    Object.assign(seen, { version: running.size < mostAtOnce ? version : '', at: Date.now() })
    tell()
    for (const id of records.sops.runs.ready()) {
      if (running.size >= mostAtOnce) return
      if (!running.has(id))
        running.set(
          id,
          start(id).finally(() => void running.delete(id)),
        )
    }
  }

  const endLook = createHomePoll(lookMs)(look)
  return {
    async close(graceMs) {
      endLook()
      stop.abort()
      await within(graceMs, Promise.all(running.values()))
    },
  }
}

/** Sends each question of a run and its answer to the chat that began it, also after a restart or a failure to send. */
function createTeller({ setup: { log } }: Host, { sops, approvals }: HostRecords, { channels, ask }: SopChats): () => void {
  const open = new Map<string, { readonly chat: SopChat; readonly close: () => void }>()
  const state = { isBusy: false }
  const send = async ({ channel, recipient }: SopChat, text: string) => channels.get(channel)?.send(recipient, text)

  async function askAbout({ id: gateId, runId, callId, tool, ...judgement }: Approval, chat: SopChat, wasSent: boolean): Promise<void> {
    const { promise, resolve: close } = Promise.withResolvers<void>()
    const approve: Conversation['approve'] = (id, answer) => approvals.decide(id, answer).then(() => undefined, errorText)
    const conversation = { id: runId, approve, gateClosed: () => promise, changesOf: sops.changesOf }
    await ask(chat, { gateId, conversation, proposal: { call: { id: callId, name: tool, input: {} }, judgement } }, wasSent)
    open.set(gateId, { chat, close })
  }

  async function tellRun(id: string, notified: string): Promise<void> {
    const { steps, ...run } = showRun({ sops }, id)
    const chat = { channel: run.channel ?? '', recipient: run.recipient ?? '' }
    const asked = steps.flatMap(({ question }) => (question === null ? [] : (sops.question(question) ?? [])))
    for (const question of asked)
      if (!question.isOver && !open.has(question.id)) await askAbout(question, chat, notified.split(' ').includes(question.id))
    if (run.ended !== null) await send(chat, answerOfRun({ ...run, steps }))
    const now = run.ended === null ? asked.map((question) => question.id).join(' ') : 'end'
    if (now !== notified) sops.runs.setNotified(id, now)
  }

  async function tellAll(): Promise<void> {
    for (const [id, { chat, close }] of open) {
      const { isOver = true, decidedBy, summary, state: ended } = sops.question(id) ?? {}
      if (!isOver) continue
      open.delete(id)
      close()
      if (!decidedBy?.startsWith(`${chat.channel} `))
        await send(chat, `[closed: ${summary}: ${ended} by ${visible(decidedBy ?? 'nobody in time')}]`).catch(noteFailure)
    }
    // A chat that cannot be reached does not keep the others waiting.
    for (const { id, notified } of sops.runs.unnotified([...channels.keys()])) await tellRun(id, notified).catch(noteFailure)
  }

  const noteFailure = (error: unknown) => log('warn', 'chat not notified of a procedure', { why: errorText(error) })

  return () => {
    if (state.isBusy) return
    state.isBusy = true
    tellAll()
      .catch(noteFailure)
      .finally(() => {
        state.isBusy = false
      })
  }
}

type Beginning = { readonly inputs: SopRunRow['inputs']; readonly by: string; readonly place?: RunPlace | undefined }

/** Records a run for the process that serves procedures. @throws FailureError when the procedure or its inputs are wrong */
export async function queueSop(host: Host, sop: string | SopFile, given: Beginning): Promise<SopRunRow> {
  const file = typeof sop === 'string' ? await findSop(host.setup, await sopTools(host.setup), sop) : sop
  const records = await host.records()
  const begun = beginSop(file, { ...given, setup: host.setup, records, owner: 'queued' })
  records.sops.written()
  return begun
}

/** Begins what `/sop NAME KEY=VALUE` names, answers a question, or lists. @returns undefined when the text is something else @throws FailureError when it is wrong */
export async function beginByText(
  text: string,
  host: Host,
  by: string,
  { mayApprove = false, place }: Asking = {},
): Promise<string | undefined> {
  const [command, name, ...words] = text.trim().split(/\s+/)
  if (command === triggerCommand && name !== undefined) {
    const [file] = await enabledSop(host, name, ({ schedule }) => schedule !== undefined)
    return begunText(await queueSop(host, file, { inputs: {}, by, place }))
  }
  if (command !== '/sop') return undefined
  const records = await host.records()
  if (name === 'allow' || name === 'deny') {
    const [id = '', ...note] = words
    if (!mayApprove) throw new FailureError('usage', 'only the approvers of this channel answer questions')
    if (!id.startsWith('sop_')) throw new FailureError('usage', `usage: /sop ${name} RUN/STEP`)
    return `${name}: ${(await records.approvals.decide(id, { allow: name === 'allow', by, note: note.join(' ') || undefined })).summary}`
  }
  if (name !== undefined) {
    const inputs = Object.fromEntries(words.map((word) => [word.split('=')[0] ?? '', word.split('=').slice(1).join('=')]))
    return begunText(await queueSop(host, name, { inputs, by, place }))
  }
  const files = (await findSops(host.setup, new Map())).map((file) => `${visible(file.name)}  ${visible(flat(file.sop.description))}`)
  const runs = records.sops.runs.list({ limit: 5 })
  const lines = runs.map((run) => `${run.id}  ${visible(run.name)}  ${run.state}  ${cut(visible(flat(run.why)), 200)}`.trimEnd())
  const open = records.approvals.list({ limit: 20 }).filter(({ tool }) => tool.startsWith('sop.'))
  const questions = open.map(({ id, summary }) => `${summary}\n  /sop allow ${id}   /sop deny ${id}`)
  return [...files, ...lines, ...questions].join('\n') || 'no procedures yet (docs/sop.md)'
}

/** `place`: the chat that gets the questions and the answer. */
type Asking = { readonly mayApprove?: boolean; readonly place?: RunPlace }

function begunText({ id, channel }: SopRunRow): string {
  return channel === null ? `${id} begins where "braidclaw serve" or "daemon" is up; else: braidclaw sop resume ${id}` : `${id} begins`
}

/** Works as `beginByText`, for a person: what is wrong is the answer. In a chat a message may also begin an enabled procedure. */
export async function sopCommand(text: string, host: Host, by: string, asking: Asking): Promise<string | undefined> {
  try {
    const { place } = asking
    const named = place && (await namedByMessage(text, host))
    if (named === undefined) return await beginByText(text, host, by, asking)
    const [file] = await enabledSop(host, named.name, ({ message }) => message !== undefined)
    return begunText(await queueSop(host, file, { ...named, by: `message of ${by}`, place }))
  } catch (error) {
    if (error instanceof FailureError) return error.message
    throw error
  }
}
