/** Declares what the routes of the gateway share. */

import type { Setup } from '../../host/api.ts'
import type { Telemetry } from '../../host/events/telemetry/open-telemetry.ts'
import type { Api } from '../../http/api.ts'
import type { ChannelHost } from '../inbox/channel-api.ts'
import type { Holders } from './access/holders.ts'
import type { Caller } from './access/token-access.ts'
import type { Talks } from './turns/talks.ts'

export type Gateway = {
  readonly host: ChannelHost
  readonly setup: Setup
  readonly version: string
  readonly talks: Talks
  readonly holders: Holders
  /** Whether it speaks HTTPS. */
  readonly secure: boolean
  /** What is counted since the server began. */
  readonly telemetry: Promise<Telemetry>
}

export type GatewayApi = Api<Caller>

/** Adds some routes. */
export type Routes = (app: GatewayApi, gateway: Gateway) => void
