/** Reads pictures that a person names, keeps those of a conversation beside its journal, and gives a model their bytes. */

import { count, quote } from '../../kit/text.ts'
import { createResults } from '../../memory/conversations/results.ts'
import type { Memory } from '../../memory/memory.ts'
import { withoutPictures } from '../../providers/sent-messages.ts'
import type { PictureRef } from '../../runtime/event.ts'
import type { ChatRequest, Message, Picture, Provider } from '../../runtime/port.ts'
import { judgePath } from '../../security/targets/path.ts'
import { mostFileBytes, pictureFrom } from '../../tools/fit-picture.ts'
import { openWorkspace } from '../../workspace/workspace.ts'
import type { Setup } from '../api.ts'
import { FailureError } from '../failure.ts'
import { policyOf } from '../setup/effective-policy.ts'

/** Vendors refuse large pictures in a request with more. */
const mostOfMessage = 20

/**
 * Reads pictures: the bytes of each, or its path from the current folder. A person may name files outside of the workspace; what the settings
 * forbid to read stays forbidden. @throws FailureError `usage` that names the picture and the reason
 */
export async function picturesOf(setup: Setup, sources: readonly (string | Uint8Array)[]): Promise<readonly Picture[]> {
  if (sources.length > mostOfMessage) throw new FailureError('usage', `${sources.length} images: a message takes ${mostOfMessage} at most`)
  const pictures = sources.map(async (source, at) => {
    const [name, bytes] = typeof source === 'string' ? [quote(source), bytesOf(setup, source, 'image')] : [`number ${at + 1}`, source]
    const fitted = await pictureFrom(bytes)
    if (!fitted.ok) throw new FailureError('usage', `image ${name}: ${fitted.why}`)
    return fitted.picture
  })
  return Promise.all(pictures)
}

/** Reads a file that a person names from the current folder. `what` begins the message of a refusal. @throws FailureError `usage` */
export function bytesOf({ config, paths, context: { env, cwd } }: Setup, path: string, what: string): Uint8Array {
  const policy = { ...policyOf(config, paths, env), workspaceOnly: false }
  const files = openWorkspace({ root: cwd, check: (place, access) => judgePath({ path: place, access, cwd, policy }), home: policy.home })
  const read = files.readBytes(path, { maxBytes: mostFileBytes })
  if (!read.ok) throw new FailureError('usage', `${what} ${quote(path)}: ${read.message}`)
  return read.bytes
}

export type Pictures = ReturnType<typeof createPictures>

type PicturesOptions = {
  readonly setup: Pick<Setup, 'config' | 'log'>
  readonly memory: Memory
  readonly conversationId: string
  readonly tell: ((line: string) => void) | undefined
}

export function createPictures({ setup: { config, log }, memory, conversationId, tell }: PicturesOptions) {
  const results = createResults(memory.store)
  const announced = new Set<string>()

  /** Says it once for each picture: the messages of a conversation are sent again and again. */
  function announce(messages: readonly Message[], model: string): void {
    const refs = messages.flatMap((message) => (message.role === 'user' ? (message.pictures ?? []) : []))
    const fresh = refs.flatMap((ref) => ('sha256' in ref && !announced.has(ref.sha256) ? ref.sha256 : []))
    for (const sha256 of fresh) announced.add(sha256)
    if (fresh.length === 0) return
    const advice = 'choose a model that sees images, or set sees in models.toml'
    if (tell) tell(`note: ${model} takes only text: ${count(fresh.length, 'picture')} not sent; ${advice}`)
    else log('warn', 'picture not sent', { model, count: fresh.length })
  }

  const bytesIn = (message: Message): Message => {
    if (message.role === 'assistant' || !message.pictures?.length) return message
    const found = message.pictures.map((each) => ('base64' in each ? each : results.picture(conversationId, each)))
    const pictures = found.filter((each) => each !== undefined)
    const lost = found.length - pictures.length
    const note = `\n[${count(lost, 'picture')} of this message: not kept any more (memory.results_max_bytes)]`
    return { ...message, content: lost > 0 ? message.content + note : message.content, pictures }
  }

  return {
    keep: (pictures: readonly Picture[]): readonly PictureRef[] =>
      pictures.map((picture) => results.keepPicture(conversationId, picture, Date.now(), config.memory.resultsMaxBytes)),
    /** Returns the request with the bytes of its pictures, or without pictures when the provider takes none. */
    shownTo(provider: Provider, request: ChatRequest): ChatRequest {
      if (provider.capabilities().pictures) return { ...request, messages: request.messages.map(bytesIn) }
      announce(request.messages, `${provider.name}/${request.model}`)
      return { ...request, messages: withoutPictures(request.messages) }
    },
  }
}
