/** Asks the control plane which agent the worker's key belongs to, with which role, and which control plane it is. */

import { errorText } from '../../kit/errors.ts'
import type { FleetClient } from '../client/control-client.ts'
import type { Identity } from '../contract/fleet-shapes.ts'
import { countRefusals, PlaneRefusal } from '../contract/plane-refusal.ts'

export type IdentifyOptions = {
  /** Uses the key of the agent. */
  readonly fleet: Pick<FleetClient, 'whoAmI'>
  readonly apiUrl: string
  /** Holds the name that a person gave; it must agree with the key. */
  readonly agentId?: string | undefined
  readonly role?: string | undefined
  readonly sleep: (ms: number) => Promise<unknown>
  readonly say: (line: string) => void
}

export type WorkerIdentity = { readonly agentId: string; readonly role: string; readonly planeId: string }

const [firstMs, longestMs] = [500, 10_000]

/** Waits until the control plane answers. @throws PlaneRefusal when the key is refused, or belongs to somebody else */
export async function identify(options: IdentifyOptions): Promise<WorkerIdentity> {
  const { kind, id, role, control_plane: planeId } = await askIdentity(options)
  const { apiUrl, agentId = id } = options
  if (kind !== 'agent' || role === null)
    throw forbidden(
      `the key is a token of ${kind === 'run' ? 'a run' : 'an operator'} (${id}), and a worker needs the key of its agent; ${newKey('NAME')}`,
    )
  if (agentId !== id)
    throw forbidden(
      `the key belongs to the agent ${JSON.stringify(id)} at ${apiUrl}, but --agent or CONTROLPLANE_AGENT_ID names ${JSON.stringify(agentId)}; leave that out, or use the key of ${agentId}: ${newKey(agentId)}`,
    )
  if (options.role !== undefined && options.role !== role)
    throw forbidden(
      `the agent ${JSON.stringify(id)} has the role ${JSON.stringify(role)} at ${apiUrl}, but --role names ${JSON.stringify(options.role)}; leave out --role, or change the agent: braidclaw control agent edit ${id} --role ${options.role}`,
    )
  return { agentId: id, role, planeId }
}

async function askIdentity({ fleet, apiUrl, agentId, sleep, say }: IdentifyOptions): Promise<Identity> {
  const refusals = countRefusals()
  let lastMessage = ''
  for (let wait = firstMs; ; wait = Math.min(longestMs, wait * 2)) {
    try {
      return await fleet.whoAmI()
    } catch (error) {
      if (!(error instanceof PlaneRefusal)) throw noPlane(apiUrl, error)
      if (refusals.isFinal(error)) throw error.code === 'not_found' ? noPlane(apiUrl, error) : refusedKey({ apiUrl, agentId }, error)
      if (error.message !== lastMessage) say(`${error.message}; waiting`)
      lastMessage = error.message
      await sleep(wait)
    }
  }
}

/** Returns the refusal with a message about the key, because the control plane refuses the key. */
export function refusedKey(
  { apiUrl, agentId }: { readonly apiUrl: string; readonly agentId?: string | undefined },
  { code, message }: PlaneRefusal,
): PlaneRefusal {
  const whose = agentId === undefined ? 'the key' : `the agent ${JSON.stringify(agentId)}`
  const advice =
    code === 'unauthorized'
      ? `check --key-file and CONTROLPLANE_API_KEY; a new key: braidclaw control key rotate ${agentId ?? 'NAME'}`
      : 'check --agent, --role and CONTROLPLANE_AGENT_ID, and start the worker again when its role was changed'
  return new PlaneRefusal(code, `the control plane at ${apiUrl} refuses ${whose}: ${message}; ${advice}`)
}

function noPlane(apiUrl: string, error: unknown): Error {
  const why = errorText(error)
  return new PlaneRefusal(
    'not_found',
    `the server at ${apiUrl} is not a control plane of this version, because it cannot say which agent a key belongs to: ${why}; check --url and CONTROLPLANE_API_URL, and update an older control plane first`,
  )
}

function forbidden(message: string): PlaneRefusal {
  return new PlaneRefusal('forbidden', message)
}

function newKey(agent: string): string {
  return `braidclaw control key new ${agent} --to ${agent}.key`
}
