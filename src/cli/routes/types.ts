/** What each command receives as flags; the tables in this folder and the code in ../commands agree on these. */

import type { SandboxKind } from '../../sandbox/confinement.ts'
import type { Json, Workspace } from '../args/flags.ts'

/** Of every turn at the command line. */
type TurnFlags = Workspace &
  Json & {
    readonly agent?: string
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
export type AgentFlags = TurnFlags & { readonly message?: string }
export type FilterFlags = TurnFlags & { readonly system?: string; readonly tools?: string; readonly toolBackend?: string }
export type DaemonFlags = Pick<TurnFlags, 'workspace' | 'agent' | 'model' | 'autonomy' | 'maxTurns' | 'approveAllMedium' | 'sandbox'> & {
  readonly fifoDir?: string
  readonly bridge?: readonly string[]
  readonly brain?: 'inside' | 'fifo'
  readonly claw?: 'inside' | 'fifo' | 'both'
  readonly envFile?: string
}
export type BridgeFlags = Workspace & {
  readonly fifoDir?: string
  readonly envFile?: string
  readonly model?: string
  readonly channel?: string
  readonly autonomy?: TurnFlags['autonomy']
  readonly approveAllMedium?: boolean
  readonly sandbox?: SandboxKind
}
export type AgentOnly = { readonly agent?: string }
export type SessionFlags = AgentOnly & Json
export type InitFlags = Workspace & Json
export type DoctorFlags = Workspace & Json & { readonly probeSandbox?: boolean }
export type TrustFlags = Json & { readonly remove?: boolean; readonly list?: boolean }
export type EstopFlags = Json & { readonly clear?: boolean; readonly reason?: string }
export type ConfigShowFlags = Workspace & Json & { readonly origin?: boolean }
export type ToolListFlags = Workspace & Json & { readonly tools?: string; readonly sandbox?: SandboxKind }
export type ToolDescribeFlags = Workspace & Json & { readonly sandbox?: SandboxKind }
export type ToolNewFlags = { readonly lang?: 'sh' | 'python' | 'ts'; readonly tools?: string }
export type ToolLoopFlags = Workspace & {
  readonly toolBackend?: string
  readonly model?: string
  readonly agent?: string
  readonly autonomy?: AgentFlags['autonomy']
  readonly approveAllMedium?: boolean
  readonly sandbox?: SandboxKind
}
export type ToolRunFlags = Workspace & {
  readonly sandbox?: SandboxKind
  readonly json?: string
  readonly tools?: string
  readonly channel?: 'cli' | 'tool-loop'
  readonly agent?: string
  readonly approveAllMedium?: boolean
  readonly autonomy?: AgentFlags['autonomy']
}
export type PolicyFlags = Workspace &
  Json & {
    readonly tool?: string
    readonly tools?: string
    readonly args?: string
    readonly threads?: string
    readonly autonomy?: AgentFlags['autonomy']
  }
export type ListFlags = Json & { readonly limit: number }
export type ClearFlags = Json & { readonly yes?: boolean }
export type ApprovalListFlags = ListFlags & { readonly all?: boolean }
export type DecisionFlags = Json & { readonly note?: string }
export type AnchorFlags = Json & { readonly to?: string; readonly gitNote?: boolean; readonly command?: boolean }
export type AcceptFlags = Json & { readonly note?: string }
export type VerifyFlags = Json & { readonly deep?: boolean; readonly against?: string }
