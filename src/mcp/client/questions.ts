/** Passes a question of a server on to a person, unless it asks for a secret. */

import { SdkError, SdkErrorCode } from '@modelcontextprotocol/client'
import { sleep } from '../../kit/abort.ts'
import { isObject } from '../../kit/json.ts'
import { quote } from '../../kit/text.ts'
import type { Schema } from '../../runtime/port.ts'
import type { Elicit } from '../contract.ts'

/** An open call, whose person the server may ask. `notes` are added to its result; `hold` keeps its time from running out. */
export type Asker = {
  readonly elicit: Elicit | undefined
  readonly signal: AbortSignal
  readonly notes: string[]
  hold(waits: boolean): void
}

type Elicited = { readonly action: 'accept' | 'decline' | 'cancel'; readonly content?: { [key: string]: never } }
const pauseMs = 250

/**
 * Answers the questions that a request led to, one after the other: a person can answer only one at a time.
 * @throws SdkError that says what servers may not ask
 */
export async function answersTo(requests: unknown, asker: Asker): Promise<object> {
  const answers: [string, Elicited][] = []
  const entries = Object.entries(isObject(requests) ? requests : {})
  if (entries.length === 0) await sleep(pauseMs, asker.signal)
  for (const [key, request] of entries) {
    const { method, params } = isObject(request) ? request : {}
    if (method !== 'elicitation/create')
      throw new SdkError(SdkErrorCode.CapabilityNotSupported, `it asks for ${quote(method)}, which servers are not offered`)
    answers.push([key, await answerTo(params, asker)])
  }
  return Object.fromEntries(answers)
}

/** @param asker undefined when nobody knows which call the question belongs to */
export async function answerTo(params: unknown, asker: Asker | undefined): Promise<Elicited> {
  const { message, requestedSchema, mode } = isObject(params) ? params : {}
  const text = typeof message === 'string' ? message.slice(0, 2_000) : ''
  const refuse = (why: string): Elicited => {
    asker?.notes.push(`the server asked ${quote(text)}, which was declined: ${why}`)
    return { action: 'decline' }
  }
  if (asker === undefined) return refuse('')
  if (mode === 'url') return refuse('it wants to open a page in a browser')
  if (!isObject(requestedSchema) || !isObject(requestedSchema.properties)) return refuse('its form has no fields')
  const secret = secretIn(text, requestedSchema.properties)
  if (secret !== undefined) return refuse(`it asks for a secret (${quote(secret)}); set it as a variable of the server instead`)
  if (asker.elicit === undefined) return refuse('nobody can be asked here')
  asker.hold(true)
  try {
    return (await asker.elicit({ message: text, schema: requestedSchema as Schema, signal: asker.signal })) as Elicited
  } catch {
    return { action: 'cancel' }
  } finally {
    asker.hold(false)
  }
}

/** Returns the words that ask for a secret: in the question, or the name, title, description or format of a field. */
function secretIn(message: string, fields: { readonly [name: string]: unknown }): string | undefined {
  if (secretSentence.test(plain(message))) return message
  return Object.entries(fields).find(([name, field]) => {
    const { title = '', format = '', description = '' } = isObject(field) ? field : {}
    return secretName.test(plain(`${name} ${title} ${format}`)) || secretSentence.test(plain(`${title} ${description}`))
  })?.[0]
}

/** `apiKey`, `API_KEY` and `api​key` read "api key". */
function plain(text: string): string {
  return text
    .normalize('NFKC')
    .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/[_\W]+/g, ' ')
    .toLowerCase()
}

const secretSentence =
  /pass ?(word|phrase|code)|\b(api|secret|private|access|recovery|license) ?keys?\b|\b(access|auth|bearer|api|refresh) ?tokens?\b|\bseed phrase\b|\bcredentials?\b/
const secretName = /pass ?w(or)?d|pass ?(phrase|code)|\b(pwd|secrets?|tokens?|(api ?)?keys?|credentials?|pin|otp|cv[vc])\b/
