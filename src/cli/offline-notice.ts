/** Tells a new user which provider answers when nobody chose one, and how to choose: one note a day. */

import type { CliSetup } from '../channels/terminal/context.ts'
import type { Config } from '../config/config.ts'
import { isOfflineDefault } from '../config/offline-default.ts'
import { readConfigFile } from '../config/text/read-toml-file.ts'
import { howToConnect, isOffline, isOtherModel } from '../host/setup/answering-provider.ts'
import { noteDaily } from '../host/setup/setup.ts'

export function noteOffline(setup: CliSetup): void {
  const said = [setup.assumed === undefined ? offlineNote(setup) : assumedNote(setup.config, setup.assumed), setup.found]
  for (const each of said) if (each !== undefined) noteDaily(setup, each)
}

function assumedNote({ defaultProvider, defaultModel }: Config, variable: string): string {
  return `${defaultProvider}/${defaultModel} answers, because ${variable} is set; to ask another: -m PROVIDER/MODEL; to keep your choice: braidclaw init`
}

function offlineNote(setup: CliSetup): string | undefined {
  return isUnanswered(setup) ? `the offline helper answers; to connect a real model, ${howToConnect(setup.context.env)}` : undefined
}

/** True when the offline helper answers, and nobody chose it. */
export function isUnanswered({ file, config }: CliSetup): boolean {
  if (!isOffline(config, config.defaultProvider) || isOtherModel(config)) return false
  return file === undefined || isInitsChoice(file)
}

/** True when the offline helper is the default because `init` found no other provider. */
export function isInitsChoice(file: string): boolean {
  const read = readConfigFile(file)
  return read.state === 'text' && isOfflineDefault(read.text)
}
