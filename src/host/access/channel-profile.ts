/**
 * Declares the settings that every channel of the daemon has, and resolves them: who may talk there and what they may do. Lowers a setup to
 * that.
 */

import { type Config, channelSettings, withParts } from '../../config/config.ts'
import type { Form, Rows } from '../../kit/settings.ts'
import { autonomyLevels } from '../../security/settings.ts'

type ProfileName = 'operator' | 'chat'

/** Names the people at the other end of a channel. A channel that says nothing serves only named people, with the profile `chat`. */
export type People = {
  readonly profile?: ProfileName
  /** Default: nobody. `*` is everyone who can reach the channel. */
  readonly users?: readonly string[]
  /** Each request carries an access token, which says who it is: the channel has no lists of people. */
  readonly byToken?: true
  /** How the channel spells a person. */
  readonly form?: Form
}

/** The limits of one channel. `tools` and `level` are limits: absent, the operator's own settings apply. */
export type ChannelProfile = {
  readonly channel: string
  readonly profile: ProfileName
  readonly users: readonly string[]
  readonly approvers: readonly string[]
  readonly tools?: readonly string[]
  readonly level?: (typeof autonomyLevels)[number]
  readonly memory: 'own' | 'all'
  /** A conversation may schedule answers to its own chat. */
  readonly schedules?: true
  readonly folder?: string
  /** The id of the access token that the request carried. */
  readonly token?: string
}

export const everyone = '*'

/** The tools that reach neither files nor programs nor the network. */
const chatTools: readonly string[] = ['time', 'memory_search']

function profileRows({ profile = 'chat', users = [], form = 'any' }: People = {}) {
  return {
    profile: {
      type: 'choice',
      values: ['operator', 'chat'],
      default: profile,
      about:
        'What people may do there. operator: what you may do yourself. chat: readonly, the tools time and memory_search (and schedule, where users are named), and a memory of their own.',
    },
    users: {
      type: 'words',
      form,
      everyone: true,
      default: users,
      about: 'The people who may talk there, by id; "*" is everyone who can reach the channel. Others get one line and nothing else.',
    },
    approvers: {
      type: 'words',
      form,
      default: [],
      about: 'The people who may talk there and also answer what a call needs a yes for; nobody is asked there when empty.',
    },
    tools_allow: {
      type: 'words',
      form: 'tool',
      absent: 'of the profile',
      example: ['time', 'memory_search', 'http'],
      about: 'The tools that may be used from there, executables included; nothing else may.',
    },
    autonomy: {
      type: 'choice',
      values: autonomyLevels,
      absent: 'of the profile',
      example: 'readonly',
      about: 'The highest level there; security.autonomy counts where it is lower.',
    },
    memory: {
      type: 'choice',
      values: ['own', 'all'],
      absent: 'of the profile',
      example: 'own',
      about:
        'own: a conversation of its own for each person and place, and memory_search sees nothing else. all: every conversation, the one of the agent included.',
    },
    folder: { type: 'path', absent: 'workspace_dir', example: '~/chat', about: 'The folder in which its tools work.' },
  } as const satisfies Rows
}

/** A channel with its own settings and its people. */
type NamedChannel = { readonly name: string; readonly people?: People }

/** Returns the rows of [channels.NAME]: the channel's own, then those that every channel has. */
export function rowsOf({ people, settings }: { readonly people?: People; readonly settings: Rows }): Rows {
  const { users, approvers, ...others } = profileRows(people)
  return { ...settings, ...others, ...(people?.byToken ? {} : { users, approvers }) }
}

export function channelProfileOf(config: Pick<Config, 'channels'>, { name, people }: NamedChannel): ChannelProfile {
  const values = channelSettings(config, { name, settings: profileRows(people) })
  const isChat = values.profile === 'chat'
  // Strangers may schedule something only when the operator names that tool.
  const isClosed = !people?.byToken && !values.users.includes(everyone)
  const tools = values.toolsAllow ? withParts(values.toolsAllow) : isChat ? [...chatTools, ...(isClosed ? ['schedule'] : [])] : undefined
  const level = values.autonomy ?? (isChat ? 'readonly' : undefined)
  return {
    channel: name,
    profile: values.profile,
    users: values.users,
    approvers: values.approvers,
    memory: values.memory ?? (isChat ? 'own' : 'all'),
    ...(!people?.byToken && (tools?.includes('schedule') ?? isClosed) ? { schedules: true } : {}),
    ...(tools ? { tools } : {}),
    ...(level ? { level } : {}),
    folder: values.folder,
  }
}

/** Tells whether the channel permits less than the operator's own settings. */
export function isLimited({ tools, level, folder }: ChannelProfile): boolean {
  return [tools, level, folder].some((limit) => limit !== undefined)
}

/**
 * Returns what makes the profile unusable, as text. A channel that strangers can reach must not make everyone an operator or give everyone
 * the operator's memory.
 */
export function profileProblem(
  { channel, profile, users, memory }: ChannelProfile,
  { people }: Pick<NamedChannel, 'people'>,
): string | undefined {
  if (!users.includes(everyone) || people?.profile === 'operator' || people?.byToken) return undefined
  if (profile === 'operator')
    return `channels.${channel}: users = ["*"] with profile = "operator" gives everyone your own rights; name the users`
  if (memory === 'all') return `channels.${channel}: users = ["*"] with memory = "all" shows everyone your conversations; name the users`
  return undefined
}

/**
 * Lowers a setup to what a channel permits (the tools, the level, the folder); it never raises anything. Returns the same setup when there
 * is no channel.
 */
export function narrowSetup<Setup extends { readonly config: Config }>(
  setup: Setup,
  access: ChannelProfile | undefined,
): Setup & { readonly access?: ChannelProfile } {
  if (access === undefined) return setup
  return { ...setup, access, config: narrowConfig(setup.config, access) }
}

function narrowConfig(config: Config, { tools, level, folder }: ChannelProfile): Config {
  const { security, channels } = config
  return {
    ...config,
    ...(folder === undefined ? {} : { workspaceDir: folder }),
    security: level === undefined ? security : { ...security, autonomy: lower(security.autonomy, level), ...unasked(config, level) },
    channels: tools === undefined ? channels : { ...channels, cli: { ...channels.cli, toolsAllow: tools } },
  }
}

function lower(one: Config['security']['autonomy'], other: Config['security']['autonomy']) {
  return autonomyLevels.indexOf(one) <= autonomyLevels.indexOf(other) ? one : other
}

/** A yes that the operator gave in advance to all medium risks does not extend to a channel below the level `full`. */
function unasked({ security }: Config, level: Config['security']['autonomy']) {
  return { approveAllMedium: security.approveAllMedium && level === 'full' }
}
