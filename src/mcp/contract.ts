/** Defines what the rest of the program knows about a server of the Model Context Protocol, and what a connection to one needs. */

import type { AuthProvider, OAuthClientProvider } from '@modelcontextprotocol/client'
import type { Json, JsonObject } from '../kit/json.ts'
import type { Picture, Schema } from '../runtime/port.ts'
import type { LineListener, LineProcess } from '../sandbox/contract.ts'

type Texts = Readonly<Record<string, string>>

export type McpCommand = { readonly kind: 'stdio'; readonly argv: readonly string[]; readonly env: Texts; readonly cwd?: string }

/**
 * Names a client that logs in without a user. Its secret, or its private key as PEM, is in the environment under `variable`, and is sent to
 * `issuer` alone. `secret` is there from the start of the server on.
 */
export type McpClientLogin = {
  readonly clientId: string
  readonly issuer: string
  readonly scope: string
  readonly proof: 'secret' | 'key'
  readonly variable: string
  readonly secret?: string
}

/** Says how a server is reached. An `http` server that only speaks the old transport is reached by SSE; `sse` asks for that at once. */
export type McpTransport =
  | McpCommand
  | { readonly kind: 'http' | 'sse'; readonly url: string; readonly headers: Texts; readonly login?: McpClientLogin }

/** The names of lists, by which a server says that one changed. */
export type McpListName = 'tools' | 'resources' | 'prompts'

/** The texts are the server's own: bounded, and without control characters in `name` and `version`, but not to be trusted. */
export type McpServerInfo = {
  readonly name: string
  readonly version: string
  /** The revision that both sides speak, such as `2026-07-28`. */
  readonly protocol: string
  readonly instructions?: string
  readonly offers: readonly (McpListName | 'subscriptions' | 'completions')[]
}

export type McpToolDefinition = {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly inputSchema: Schema
  readonly outputSchema?: JsonObject
  /** The server's own words about its tool; no judgement rests on them. */
  readonly annotations?: JsonObject
}

/** `uri` of a template is a template of RFC 6570, such as `file:///{path}`. */
export type McpResourceDefinition = {
  readonly uri: string
  readonly name: string
  readonly description: string
  readonly mimeType?: string
  readonly isTemplate: boolean
}

export type McpPromptDefinition = {
  readonly name: string
  readonly description: string
  readonly arguments: readonly { readonly name: string; readonly description: string; readonly required: boolean }[]
}

/** `why` is one sentence for a person, with what to do. `needsLogin`: a login helps, and the caller knows the command for it. */
export type McpFailure = { readonly why: string; readonly needsLogin?: true }

/** `refused` lists what the server defined in a form that is not accepted; the other definitions are usable. */
export type McpList<T> = { readonly items: readonly T[]; readonly refused: readonly { readonly name: string; readonly why: string }[] }

/**
 * `text` has at most `maxBytes` bytes of UTF-8; its control characters are the reader's matter. `pictures` are checked by their content.
 * `structured` is there when the server sent it and it fits into `maxBytes`. `isError` with `failed`: the call itself failed (the server
 * hung, died or lied), and `text` says why.
 */
export type McpContent = {
  readonly text: string
  readonly pictures: readonly Picture[]
  readonly structured?: Json
  readonly isError: boolean
  readonly failed?: McpFailure
}

type Elicitation = { readonly message: string; readonly schema: Schema; readonly signal: AbortSignal }

/** Asks a person for the server. `schema` is a flat object of texts, numbers, booleans and choices that asks for no secret. */
export type Elicit = (question: Elicitation) => Promise<{ readonly action: 'accept' | 'decline' | 'cancel'; readonly content?: JsonObject }>

export type McpCallOptions = {
  readonly signal: AbortSignal
  /** Gets a line whenever the server reports progress, at most ten a second. */
  readonly onProgress?: (text: string) => void
  /** Absent: every question of the server is declined. */
  readonly elicit?: Elicit
}

/** No method rejects. An abort of the signal ends the wait within a second, whether the server answers or not. */
export type McpConnection = {
  readonly server: McpServerInfo
  /** All pages, bounded in number and bytes. A server without such a list has an empty one. */
  tools(signal: AbortSignal): Promise<McpList<McpToolDefinition> | McpFailure>
  resources(signal: AbortSignal): Promise<McpList<McpResourceDefinition> | McpFailure>
  prompts(signal: AbortSignal): Promise<McpList<McpPromptDefinition> | McpFailure>
  /** Checks the result against the output schema of the definition that `tools` returned last. */
  callTool(name: string, input: JsonObject, options: McpCallOptions): Promise<McpContent>
  readResource(uri: string, options: McpCallOptions): Promise<McpContent>
  /** Yields when the resource changed, at most a few times a second; it ends with the signal or the connection. @throws never */
  subscribe(uri: string, signal: AbortSignal): AsyncIterable<{ readonly uri: string }>
  getPrompt(name: string, input: Texts, options: McpCallOptions): Promise<McpContent>
  /** Completes a prompt's argument, or a variable of a template. */
  complete(
    target: { readonly prompt: string } | { readonly template: string },
    argument: { readonly name: string; readonly value: string },
    signal: AbortSignal,
  ): Promise<readonly string[] | McpFailure>
  /** Calls back when a list changed or its time to live ran out: at most four times a second, however many changes there are. */
  onListChanged(listener: (list: McpListName) => void): void
  /** Aborts when the connection ended; its reason is a sentence for a person. */
  readonly closed: AbortSignal
  /** Resolves when the server's process has been told to end, or the session is over. */
  close(): Promise<void>
}

export type McpPorts = {
  /** Starts the server confined and speaks with it in lines: `startLineProcess` with a spawn and the plan of the operator. */
  readonly start: (command: McpCommand, listener: LineListener) => LineProcess
  /** Judges every address and every redirect by itself; it streams the body of the answer. */
  readonly fetch: typeof fetch
  readonly auth?: AuthProvider | OAuthClientProvider
  /** The version of this program, which the server is told. */
  readonly version: string
  /** The bytes of text that the model's window has room for in one result. */
  readonly maxBytes: number
  /** The time for connecting and for each list; 30 s when absent. */
  readonly timeoutMs?: number
  /** The time that a call may take without progress; 120 s when absent. */
  readonly callTimeoutMs?: number
}

/** Never rejects: a failure says what went wrong and what to do. The signal ends the attempt; a connection ends by `close`. */
export type Connect = (transport: McpTransport, ports: McpPorts, signal: AbortSignal) => Promise<McpConnection | McpFailure>
