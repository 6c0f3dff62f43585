/** Declares what the routes of the gateway share. */

import type { ChannelHost, Setup } from '../../host/api.ts'
import type { Telemetry } from '../../host/events/telemetry/open-telemetry.ts'
import type { Api } from '../../http/api.ts'
import type { Talks } from './talks.ts'
import type { Caller } from './token-access.ts'

export type Gateway = {
  readonly host: ChannelHost
  readonly setup: Setup
  readonly version: string
  readonly talks: Talks
  /** What is counted since the server began. */
  readonly telemetry: Promise<Telemetry>
}

export type GatewayApi = Api<Caller>

/** Adds some routes. */
export type Routes = (app: GatewayApi, gateway: Gateway) => void
