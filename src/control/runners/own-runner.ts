/** Runs a task in this process: a conversation of our own on the copy of the workspace, with the model of the worker's home. */

import type { Conversation, ConversationChoice, Host, Setup } from '../../host/api.ts'
import { isOffline } from '../../host/setup/answering-provider.ts'
import { providerFor } from '../../host/setup/provider-pool.ts'
import type { ToolSelection } from '../../host/toolset/contract.ts'
import { atAsyncEnd, errorText } from '../../kit/errors.ts'
import { escapeHidden } from '../../kit/escape.ts'
import { digest } from '../../kit/sha256.ts'
import { cut } from '../../kit/text.ts'
import type { AgentEvent, Usage } from '../../runtime/event.ts'
import { type Grant, type Meter, type Provider, ProviderFailure, type Question, type Quote } from '../../runtime/port.ts'
import { PlaneRefusal, whileOthersHold } from '../contract/plane-refusal.ts'
import type { OwnRun, OwnRunPort, OwnRunRequest, OwnRunResult } from './runner.ts'

type OwnRunnerOptions = {
  readonly host: Pick<Host, 'conversation' | 'records'>
  readonly setup: Setup
  readonly agentId: string
  /** Holds the built-in tools and skills_search; absent: the tools of the configuration. */
  readonly tools?: ToolSelection
  /** Replaces the configured provider. */
  readonly provider?: Provider
}

/** @returns why the own runner cannot work with this configuration; undefined when it can */
export function ownRunnerProblem({ config }: Pick<Setup, 'config'>): string | undefined {
  if (!isOffline(config, config.defaultProvider)) return undefined
  return 'the runner "own" needs a model, and only the offline helper is configured; run "braidclaw onboard", set OPENAI_API_KEY or ANTHROPIC_API_KEY, or choose another runner (--runner pi|claude|codex|aider|command)'
}

export function ownRunner(options: OwnRunnerOptions): OwnRun {
  const { host, setup } = options
  const setups = new Map<string, Setup>()
  /** Returns the same settings for the same folder, because equal settings share their provider, policy and sandbox. */
  const setupIn = (workspaceDir: string) => {
    const known = setups.get(workspaceDir) ?? { ...setup, config: { ...setup.config, workspaceDir } }
    setups.set(workspaceDir, known)
    return known
  }
  return async (request) => {
    const provider = options.provider ?? (await providerFor(setup, setup.config.defaultProvider))
    const { run, task } = request
    const remaining = async () => (await run.beat(task.task_id)).budget_remaining
    const conversation = await host.conversation(choiceOf(request), {
      channel: 'control',
      setup: setupIn(request.workspace),
      provider: meteredByPlane(provider, { reserve: run.reserve, settle: run.settle, remaining }),
      tools: options.tools,
    })
    await using _end = atAsyncEnd(() => conversation.close())
    return await converse(options, request, conversation)
  }
}

/** Continues the session of the previous run; a session that does not exist any more begins again. */
function choiceOf({ session }: OwnRunRequest): ConversationChoice {
  return session === undefined ? { kind: 'new' } : { kind: 'session', id: session }
}

async function converse(options: OwnRunnerOptions, request: OwnRunRequest, conversation: Conversation): Promise<OwnRunResult> {
  const { run, task, log, signal } = request
  const state: { answer?: string; waits?: string } = {}
  const decide = ownApprovals({
    ...{ agentId: options.agentId, taskId: task.task_id, conversation, run, redact: options.setup.redactor.json },
  })
  const message = request.skillIndex === '' ? request.prompt : `${request.prompt}\nSkills:\n${request.skillIndex}\n`
  for await (const event of conversation.run(message, signal)) {
    log(lineOf(event))
    if (event.type === 'done' && event.result !== undefined) state.answer = event.result
    const question = event.type === 'approval_gate' ? conversation.gate(event.gateId) : undefined
    if (event.type !== 'approval_gate' || !question) continue
    const waits = await decide(event.gateId, question)
    if (waits === undefined) continue
    state.waits = waits
    conversation.cancel('control plane')
  }
  return resultOf({ conversation, options, ...state })
}

type ConversationEnd = {
  readonly conversation: Conversation
  readonly options: OwnRunnerOptions
  readonly answer?: string
  readonly waits?: string
}

async function resultOf({ conversation, options, answer = '', waits }: ConversationEnd): Promise<OwnRunResult> {
  const ending = conversation.ending()
  const usage = conversation.usage()
  const runId = conversation.runId()
  return {
    ending: waits !== undefined ? 'waiting' : ending?.code === 'answered' ? 'completed' : ending?.code === 'budget' ? 'blocked' : 'failed',
    output: waits ? `waits for ${waits}` : ending?.code === 'answered' ? answer : (ending?.message ?? 'the run ended without an ending'),
    tokens: usage ? usage.inputTokens + usage.outputTokens : 0,
    model: conversation.model,
    session: conversation.id,
    receipts: runId === undefined ? [] : (await options.host.records()).receipts.ofRun(runId),
  }
}

/** Returns a line for the log: texts, and which tools ran. */
function lineOf(event: AgentEvent): string {
  if (event.type === 'text' && !event.isPartial) return `${event.content}\n`
  if (event.type === 'tool_use') return `> ${event.toolName} ${escapeHidden(JSON.stringify(event.input)).slice(0, 2_000)}\n`
  if (event.type === 'tool_result') return `< ${event.status}\n`
  return event.type === 'error' ? `[${event.code}: ${event.message}]\n` : ''
}

type ApprovalsAsked = {
  readonly agentId: string
  readonly taskId: string
  readonly conversation: Pick<Conversation, 'approve' | 'changesOf'>
  readonly run: Pick<OwnRunPort, 'approvals' | 'useApproval' | 'activity'>
  readonly redact: <T>(json: T) => T
}

const mostInput = 16_000

/** Returns what decides an open question, and returns the id of the approval that the run now waits for, and then has to end. */
function ownApprovals(asked: ApprovalsAsked): (gateId: string, question: Question) => Promise<string | undefined> {
  const { conversation, run, agentId, taskId } = asked
  const allow = (gateId: string, by: string, note: string) => conversation.approve(gateId, { allow: true, by, note })

  return async (gateId, question) => {
    if (await conversation.changesOf(gateId)) return void (await allow(gateId, 'worker', 'only in the copy of this run'))
    const operation = operationOf(question, asked)
    const operationDigest = digest(operation)
    const known = (await run.approvals(taskId)).find((each) => each.digest === operationDigest && each.state === 'approved')
    if (known) {
      const { approval_id, note } = await run.useApproval(known.approval_id, operationDigest)
      return void (await allow(gateId, `operator (${approval_id})`, note ?? ''))
    }
    const reply = await run.activity({
      ...{ event_type: 'approval_request', agent_id: agentId, task_id: taskId, estimated_tokens: 0 },
      ...operation,
      reasoning: cut(question.judgement.reason, 4_000),
    })
    await conversation.approve(gateId, {
      allow: false,
      by: 'control plane',
      note: `an operator was asked (${reply.approval_id}); stop here`,
    })
    return reply.approval_id ?? 'an approval'
  }
}

/** Returns the operation of a call. The same call in a later run gives the same operation, because the path of the copy is not part of it. */
function operationOf({ call, judgement }: Question, { redact }: ApprovalsAsked) {
  const input = redact(call.input)
  const text = JSON.stringify(input)
  const details = text.length > mostInput ? { tool: call.name, input_digest: digest(input) } : { tool: call.name, input }
  return { operation: cut(redact(`${call.name}: ${judgement.summary}`), 1_900), details }
}

type RunBudget = Pick<OwnRunPort, 'reserve' | 'settle'> & {
  /** Returns the tokens that the run may still spend; null without a limit. */
  remaining(): Promise<number | null>
}

/** An answer shorter than this is not worth a call. */
const leastAnswer = 256

/** Charges both budgets: that of the control plane, and that of the worker's own home. */
export function meteredByPlane(provider: Provider, budget: RunBudget): Provider {
  const meter = planeMeter(budget)
  return { ...provider, chat: (request, signal) => provider.chat({ ...request, meter: both(meter, request.meter) }, signal) }
}

/** @throws ProviderFailure `budget` when the control plane refuses */
export function planeMeter({ reserve, settle, remaining }: RunBudget): Meter {
  const state: { left?: number | null } = {}
  return async (quote) => {
    if (state.left === undefined) state.left = await remaining().catch(() => null)
    const outputTokens = affordable(quote, state.left)
    const tokens = Math.max(1, quote.inputTokens + outputTokens)
    const purpose = `${quote.provider}/${quote.model}`.slice(0, 200)
    const reservation = await whileOthersHold(() => reserve({ tokens, purpose }), { sleep: Bun.sleep }).catch(refused)
    state.left = reservation.budget_remaining
    return {
      outputTokens,
      async settle(used) {
        const spent = tokensOf(used, tokens)
        const done = await settle({ reservation_id: reservation.reservation_id, tokens: spent, model: quote.model.slice(0, 200) })
        state.left = done.budget_remaining
      },
    }
  }
}

/** Returns how long the answer may be. When not even a short one can be paid, the control plane is asked all the same, and refuses with its message. */
function affordable({ inputTokens, outputTokens }: Quote, left: number | null): number {
  if (left === null || inputTokens + outputTokens <= left) return outputTokens
  return Math.min(outputTokens, Math.max(leastAnswer, left - inputTokens))
}

/** Counts the tokens of an answer. One that cannot be counted costs all that was reserved. */
function tokensOf(used: Usage | 'nothing' | 'unknown', reserved: number): number {
  if (used === 'nothing') return 0
  if (used === 'unknown') return reserved
  const counted = used.inputTokens + used.outputTokens
  return used.estimated ? Math.max(reserved, counted) : counted
}

function refused(error: unknown): never {
  const message = errorText(error)
  if (error instanceof PlaneRefusal && error.code === 'budget_exceeded') throw new ProviderFailure('budget', message)
  if (error instanceof PlaneRefusal && error.code !== 'unavailable') throw new ProviderFailure('aborted', message, { unsent: true })
  throw new ProviderFailure('server', message, { unsent: true })
}

function both(plane: Meter, home: Meter | undefined): Meter {
  if (home === undefined) return plane
  return async (quote): Promise<Grant> => {
    const own = await home(quote)
    const paid = await plane({ ...quote, outputTokens: Math.min(quote.outputTokens, own.outputTokens) }).catch(async (error: unknown) => {
      await own.settle('nothing')
      throw error
    })
    return {
      outputTokens: Math.min(own.outputTokens, paid.outputTokens),
      async settle(used) {
        await Promise.all([own.settle(used), paid.settle(used)])
      },
    }
  }
}
