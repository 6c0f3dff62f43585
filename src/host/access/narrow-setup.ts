/** Lowers a setup to what a channel permits: the tools, the level, the folder. It never raises anything. */

import type { Config } from '../../config/config.ts'
import { autonomyLevels } from '../../security/settings.ts'
import type { ChannelProfile } from './channel-profile.ts'

/** Returns the same setup when there is no channel. */
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
