/** Makes one model call and returns the event that reports it: it passes pieces on as they arrive and judges every call in the reply. */

import { errorText } from '../../kit/errors.ts'
import type { AgentEvent, Call, ExternalEvent, Judgement, Part, Proposal } from '../event.ts'
import { type ChatRequest, type ChatResponse, type Judge, type Provider, ProviderFailure, type Redact, type RedactStream } from '../port.ts'
import { costsNothing, sanitizeUsage } from '../usage.ts'

type Thought = Extract<ExternalEvent, { type: 'model.done' } | { type: 'model.fail' }>

export type ModelQuestion = {
  readonly provider: Provider
  readonly judge: Judge
  readonly request: ChatRequest
  readonly signal: AbortSignal
  /** Call ids seen in this run; `think` adds to it. It renames an id that a provider repeats, because everything depends on unique ids. */
  readonly usedIds: Set<string>
  readonly redact: Redact
  readonly redactStream: RedactStream
  /** `think` waits for the returned promise, if any: a consumer that takes pieces slowly slows the model's stream down. */
  readonly onPiece: (piece: AgentEvent) => Promise<void> | undefined
  /** Called with the provider's failure, whose details the event leaves out. */
  readonly onFailure?: (failure: ProviderFailure) => void
}

/** Never rejects: any error becomes a `model.fail`. */
export async function think(given: ModelQuestion): Promise<Thought> {
  const output = { any: false }
  const question = { ...given, onPiece: noting(given, output) }
  try {
    if (question.signal.aborted) return unasked
    const response = await Promise.race([listen(question), whenAborted(question.signal)])
    if (question.signal.aborted || response === undefined) return cancelled
    const parts = response.parts.map((part) => (part.type === 'call' ? { ...part, id: fresh(part.id, question.usedIds) } : part))
    return {
      type: 'model.done',
      parts: question.redact(parts),
      proposals: await propose(parts, question),
      usage: sanitizeUsage(response.usage),
      model: response.model,
      provider: response.provider,
      ...(response.stop === 'length' || response.stop === 'content_filter' ? { cut: response.stop } : {}),
    }
  } catch (error) {
    if (question.signal.aborted) return cancelled
    if (error instanceof ProviderFailure) {
      question.onFailure?.(error)
      const unbilled = !output.any && costsNothing(error)
      return { type: 'model.fail', code: error.code, message: question.redact(error.message), ...(unbilled ? { unbilled } : {}) }
    }
    return { type: 'model.fail', code: 'unknown', message: question.redact(errorText(error)) }
  }
}

const cancelled = { type: 'model.fail', code: 'aborted', message: 'the model call was cancelled' } as const satisfies Thought
export const unasked: Thought = { ...cancelled, unbilled: true }

/** Notes whether the model has said anything: a failure after that has its price. */
function noting({ onPiece }: ModelQuestion, output: { any: boolean }): ModelQuestion['onPiece'] {
  return (piece) => {
    output.any = true
    return onPiece(piece)
  }
}

/** Resolves on abort. A custom provider may never react to a cancel; the run does not wait for it. */
export function whenAborted(signal: AbortSignal): Promise<undefined> {
  if (signal.aborted) return Promise.resolve(undefined)
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined), { once: true }))
}

async function listen({ provider, request, signal, redact, redactStream, onPiece }: ModelQuestion): Promise<ChatResponse> {
  const clean = redactStream()
  const thoughts: string[] = []
  const emit = (piece: AgentEvent & { content: string }) => (piece.content === '' || signal.aborted ? undefined : onPiece(piece))
  const emitText = (content: string) => emit({ type: 'text', content, isPartial: true })
  /** Emits the thoughts before the text that they led to. */
  const emitThoughts = () => emit({ type: 'thinking', content: redact(thoughts.splice(0).join('')) })
  for await (const chunk of provider.chat(request, signal)) {
    if (chunk.type === 'thinking') thoughts.push(chunk.text)
    else if (thoughts.length > 0) await emitThoughts()
    const room = chunk.type === 'text' ? emitText(clean.push(chunk.text)) : undefined
    if (room !== undefined) await room
    if (chunk.type !== 'done') continue
    await emitText(clean.flush())
    return chunk.response
  }
  throw new ProviderFailure('bad_response', `${provider.name}: the stream ended without an end`)
}

/** Judges the calls as the model requested them; what is stored of them is redacted. */
async function propose(parts: readonly Part[], { judge, redact }: Pick<ModelQuestion, 'judge' | 'redact'>): Promise<Proposal[]> {
  const calls = parts.flatMap((part): Call[] => (part.type === 'call' ? [callOf(part)] : []))
  return Promise.all(
    calls.map(async (asked) => {
      const [call, judgement] = [redact(asked), redact(await judge(asked))]
      return { call, judgement: call === asked ? judgement : refused(judgement) }
    }),
  )
}

/** Denies the call whatever the gate says: without its secret it would be a different call. */
function refused(judgement: Judgement): Judgement {
  return denied(judgement, 'redaction.secret', 'the arguments hold a secret; nothing was run')
}

function denied(judgement: Judgement, rule: string, reason: string): Judgement {
  return judgement.verdict === 'deny' ? judgement : { ...judgement, verdict: 'deny', rule, reason, writes: [] }
}

/** The thread that requested a call, and the call itself in the form that the model sees; see `judged`. */
export type Judging = Pick<ModelQuestion, 'judge' | 'redact' | 'usedIds'> & { readonly by: string; readonly call: Call }

/** Never rejects: a call that cannot be judged is denied. */
export async function judgeFor({ by, call, judge, redact, usedIds }: Judging): Promise<Pick<JudgedCall, 'parts' | 'proposals'>> {
  const parts = redact<Part[]>([
    { type: 'text', text: `(The program's thread ${by} asks for this call.)` },
    { type: 'call', ...call },
  ])
  const isNew = !usedIds.has(call.id)
  usedIds.add(call.id)
  try {
    const proposals = await propose([{ type: 'call', ...call }], { judge, redact })
    if (isNew) return { parts, proposals }
    return {
      parts,
      proposals: proposals.map((one) => ({ ...one, judgement: denied(one.judgement, 'thread.id', 'this run has had a call of that id') })),
    }
  } catch (error) {
    const why = redact(errorText(error))
    const none: Judgement = { verdict: 'deny', risk: 'high', rule: 'gate.error', reason: why, plan: '', summary: call.name, writes: [] }
    return { parts, proposals: [{ call: redact(call), judgement: none }] }
  }
}

type JudgedCall = Extract<ExternalEvent, { type: 'judged' }>

export function callOf({ id, name, input, malformed }: Call): Call {
  return { id, name, input, malformed }
}

function fresh(id: string, used: Set<string>): string {
  const name = used.has(id) ? nextFree(id, used) : id
  used.add(name)
  return name
}

function nextFree(id: string, used: ReadonlySet<string>): string {
  const uses = [...used].filter((name) => name === id || name.startsWith(`${id}~`)).length
  return `${id}~${uses + 1}`
}
