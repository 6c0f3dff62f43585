/** What each command receives as flags; the tables in this folder and the code in ../commands agree on these. */

import type { SandboxKind } from '../../sandbox/port.ts'
import type { Json, Workspace } from './flags.ts'

export type AgentFlags = Workspace &
  Json & {
    readonly message?: string
    readonly model?: string
    readonly autonomy?: 'readonly' | 'supervised' | 'full'
    readonly maxTurns?: number
    readonly continue?: boolean
    readonly resume?: string
    readonly acceptAltered?: boolean
    readonly sandbox?: SandboxKind
    readonly approveAllMedium?: boolean
    readonly outputFormat?: 'text' | 'json' | 'stream-json'
  }
export type InitFlags = Workspace & Json
export type DoctorFlags = Workspace & Json & { readonly probeSandbox?: boolean }
export type TrustFlags = Json & { readonly remove?: boolean; readonly list?: boolean }
export type EstopFlags = Json & { readonly clear?: boolean; readonly reason?: string }
export type ConfigShowFlags = Workspace & Json & { readonly origin?: boolean }
export type ToolRunFlags = Workspace & {
  readonly sandbox?: SandboxKind
  readonly json: string
  readonly approveAllMedium?: boolean
  readonly autonomy?: AgentFlags['autonomy']
}
export type PolicyFlags = Workspace & {
  readonly tool?: string
  readonly json?: string
  readonly output?: 'text' | 'json'
  readonly autonomy?: AgentFlags['autonomy']
}
export type ListFlags = Json & { readonly limit: number }
export type ClearFlags = Json & { readonly yes?: boolean }
export type ApprovalListFlags = ListFlags & { readonly all?: boolean }
export type DecisionFlags = Json & { readonly note?: string }
export type AnchorFlags = Json & { readonly to?: string; readonly gitNote?: boolean; readonly command?: boolean }
export type VerifyFlags = Json & { readonly deep?: boolean; readonly against?: string }
