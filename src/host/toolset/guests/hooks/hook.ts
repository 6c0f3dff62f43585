/** Defines hooks: programs of a person that look at a step of a turn, and may veto it, ask for a yes, or add text for the model. */

import type { JsonObject } from '../../../../kit/json.ts'
import type { Call } from '../../../../runtime/event.ts'
import type { ToolRuntime } from '../../contract.ts'

export const hookEvents = ['session_start', 'prompt', 'before_tool', 'after_tool', 'changes', 'stop', 'notification', 'compact'] as const
export type HookEvent = (typeof hookEvents)[number]

/** `paths`: the absolute paths that the call names, or that changed. `facts`: what only this event has. */
export type Occasion = {
  readonly event: HookEvent
  readonly call?: Pick<Call, 'name' | 'input'>
  readonly paths?: readonly string[]
  readonly facts?: JsonObject
}

/** How the program of a hook ended; `failed`: why it has no answer, such as its time limit. */
export type HookEnd = { readonly code: number; readonly stdout: string; readonly stderr: string } | { readonly failed: string }

/** `context` is text for the model, `message` a line for the person. There is no word for a permission: only the gate permits. */
export type HookAnswer =
  | { readonly verdict?: 'veto' | 'ask'; readonly reason?: string; readonly context?: string; readonly message?: string }
  | { readonly failed: string }

export type Hook = {
  /** Its name in messages, rules and receipts. */
  readonly name: string
  /** The file that defines it. */
  readonly file: string
  readonly event: HookEvent
  /** A command line for /bin/sh. */
  readonly run: string
  readonly matches: (occasion: Occasion) => boolean
  readonly timeoutS: number
  /** False: it runs with all rights of the person, whose own file says so. */
  readonly sandbox: boolean
  /** It works on a private view of the workspace, and what it changes there is judged like the changes of a command. */
  readonly write: boolean
  /** A failure vetoes; otherwise it is reported, and the step goes on. */
  readonly strict: boolean
  readonly env: { readonly [name: string]: string }
  /** Returns what the program reads on stdin. */
  readonly input: (occasion: Occasion, base: HookBase) => JsonObject
  readonly answer: (end: Exclude<HookEnd, { failed: string }>) => HookAnswer
}

export type HookBase = { readonly conversation: string; readonly workspace: string; readonly dryRun: boolean }

/** `notices`: what a person should know. With any problem no run may start. */
export type LoadedHooks = { readonly hooks: readonly Hook[]; readonly notices: readonly string[]; readonly problems: readonly string[] }

/** The parts of a tool runtime that judge a call and carry it out. */
export type ToolPorts = Pick<ToolRuntime, 'judge' | 'act' | 'changes'>
