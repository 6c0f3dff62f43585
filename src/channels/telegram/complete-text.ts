/**
 * Completes the text of a message when its turn begins: photos are fetched and saved, their places are said, and what a vision model reads
 * in them follows.
 */

import { isAbsolute, join } from 'node:path'
import type { Setup } from '../../host/api.ts'
import { errorText } from '../../kit/errors.ts'
import { isObject } from '../../kit/json.ts'
import { count } from '../../kit/text.ts'
import type { Picture } from '../../runtime/port.ts'
import type { TurnPlace } from '../inbox/channel-api.ts'
import { pictureKind, visionBlock } from '../inbox/vision-block.ts'
import type { BotApi } from './bot-api.ts'
import type { Photo, TelegramMessage } from './inbound.ts'
import { photoPath, savePhoto } from './photo-folder.ts'
import type { TelegramSettings } from './settings.ts'

export type Completing = {
  readonly conversation: Pick<TurnPlace['conversation'], 'readPictures' | 'readsUntrusted'>
  readonly access: Pick<TurnPlace['access'], 'profile'>
  readonly setup: Setup
  readonly api: BotApi
  readonly settings: TelegramSettings
  readonly signal: AbortSignal
}

/** A photo that cannot be fetched is named, and the message goes on. Rejects only when the record cannot be written. */
export async function completeText(message: TelegramMessage, completing: Completing): Promise<string> {
  const { conversation, setup, signal } = completing
  // Whoever wrote a forwarded text is not the person who sent it.
  if (message.isForwarded) await conversation.readsUntrusted()
  if (message.photos.length === 0) return message.text
  const saved = []
  for (const photo of message.photos) saved.push(await fetched(message, photo, completing))
  const pictures = saved.flatMap(({ picture }) => picture ?? [])
  const read = await conversation.readPictures(pictures, signal)
  const unread = read.length === 0 ? 0 : pictures.length - read.length
  const more = unread === 0 ? [] : [`[${count(unread, 'more picture')} of this message: not read.]`]
  return [message.text, ...saved.map(({ says }) => says), ...more, ...visionBlock(read, setup.config.vision)]
    .filter((part) => part !== '')
    .join('\n')
}

type Saved = { readonly says: string; readonly picture?: Picture }

async function fetched({ chat }: TelegramMessage, photo: Photo, { setup, settings, access, api, signal }: Completing): Promise<Saved> {
  const { photosKeep, photosKeepMb, photoMaxMb } = settings
  try {
    const bytes = await download(photo, { api, signal, most: photoMaxMb * 1_048_576 })
    const kind = pictureKind(bytes)
    if (!kind) throw new Error('it is no JPEG, PNG or WebP picture')
    const tmpDir = tmpDirOf(setup, settings)
    const file = { chat, name: `${photo.messageId}.${kind.ending}`, bytes }
    savePhoto(tmpDir, file, { most: photosKeep, mostBytes: photosKeepMb * 1_048_576 })
    setup.log('info', 'photo saved', { path: photoPath(tmpDir, file), bytes: bytes.length })
    // Where the folder is does not concern people in a chat, and the model may repeat it.
    const shown = access.profile === 'chat' ? 'TMP_DIR' : tmpDir
    return { says: `[Photo saved: ${photoPath(shown, file)}]`, picture: { type: kind.type, base64: Buffer.from(bytes).toBase64() } }
  } catch (error) {
    const why = errorText(error)
    setup.log('warn', 'photo not saved', { chat, why })
    return { says: `[Photo not saved: ${access.profile === 'chat' ? 'it could not be fetched or is too large' : why}]` }
  }
}

/** Other programs use this variable too, so it is checked only here. */
function tmpDirOf({ context: { env, home } }: Setup, { tmpDir }: TelegramSettings): string {
  const said = tmpDir ?? (env.TMP_DIR || join(home, 'tmp'))
  if (isAbsolute(said)) return said
  throw new Error(`TMP_DIR: ${JSON.stringify(said)} is not absolute; start it with "/", or set channels.telegram.tmp_dir`)
}

type Fetching = { readonly api: BotApi; readonly signal: AbortSignal; readonly most: number }

/** @throws Error */
async function download({ fileId, bytes = 0 }: Photo, { api, signal, most }: Fetching): Promise<Uint8Array> {
  const tooLarge = (size: number) =>
    new Error(`it has ${Math.ceil(size / 1_048_576)} MiB; channels.telegram.photo_max_mb permits ${most / 1_048_576}`)
  if (bytes > most) throw tooLarge(bytes)
  const file = await api.call('getFile', { file_id: fileId }, { signal })
  const { file_path: path, file_size: size } = isObject(file) ? file : {}
  if (typeof path !== 'string') throw new Error('Telegram names no file')
  if (typeof size === 'number' && size > most) throw tooLarge(size)
  return api.file(path, { signal, most, timeoutMs: 60_000 })
}
