/** Selects the updates for the agent: a message of a person, in a private chat or addressed to the bot in a group. */

import { isObject } from '../../kit/json.ts'

/** `messageId`: the message that brought it; the photos of an album come as one message each. */
export type Photo = { readonly fileId: string; readonly messageId: number; readonly bytes?: number }

export type ChatCommand = 'start' | 'stop' | 'new'

/** Plain data, because the ledger stores open messages in a file. Ids are Telegram's, in digits; those of groups are negative. */
export type TelegramMessage = {
  readonly updateId: number
  readonly messageId: number
  readonly chat: string
  /** The topic of a forum. */
  readonly thread?: number
  readonly isGroup: boolean
  readonly person: string
  readonly text: string
  readonly photos: readonly Photo[]
  readonly command?: ChatCommand
  /** The text was written by somebody else. */
  readonly isForwarded: boolean
  readonly album?: string
}

export type InboundUpdate =
  | { readonly kind: 'message'; readonly message: TelegramMessage }
  | { readonly kind: 'not for us' }
  | { readonly kind: 'moved'; readonly from: string; readonly to: string }
  | { readonly kind: 'no text'; readonly chat: string; readonly messageId: number; readonly why: string }

export type Self = { readonly id: number; readonly username: string }

type JsonFields = { readonly [key: string]: unknown }

/** Never throws: it checks each field that Telegram sends. */
export function parseUpdate(update: unknown, self: Self): InboundUpdate {
  const { update_id: updateId, message } = fields(update)
  const body = fields(message)
  const [from, chat] = [fields(body.from), fields(body.chat)]
  const [movedFrom, movedTo] = [whole(body.migrate_from_chat_id), whole(body.migrate_to_chat_id)]
  if (movedTo !== undefined && whole(chat.id) !== undefined) return { kind: 'moved', from: String(chat.id), to: String(movedTo) }
  if (movedFrom !== undefined && whole(chat.id) !== undefined) return { kind: 'moved', from: String(movedFrom), to: String(chat.id) }
  const [person, place, messageId] = [whole(from.id), whole(chat.id), whole(body.message_id)]
  if (typeof updateId !== 'number' || person === undefined || place === undefined || messageId === undefined) return { kind: 'not for us' }
  const isGroup = chat.type === 'group' || chat.type === 'supergroup'
  const isMachine = from.is_bot !== false || body.sender_chat !== undefined || body.via_bot !== undefined
  if (isMachine || (chat.type !== 'private' && !isGroup)) return { kind: 'not for us' }
  const text = textOf(body)
  const named = mentions(body, text, self)
  if (isGroup && named.length === 0 && !isReplyTo(body, self)) return { kind: 'not for us' }
  const words = withoutMentions(text, named)
  const photos = photosOf(body).map((photo) => ({ ...photo, messageId }))
  if (words === '' && photos.length === 0) return { kind: 'no text', chat: String(place), messageId, why: whyNoText(body) }
  const command = commandIn(body, text, self)
  const thread = body.is_topic_message === true ? whole(body.message_thread_id) : undefined
  return {
    kind: 'message',
    message: {
      ...{ updateId, messageId, chat: String(place), isGroup, person: String(person), text: words, photos },
      isForwarded: body.forward_origin !== undefined || body.forward_date !== undefined,
      thread,
      command,
      album: typeof body.media_group_id === 'string' ? body.media_group_id : undefined,
    },
  }
}

/** Joins the photos of an album, which come as one message each, to the first of them. */
export function joinAlbums(messages: readonly TelegramMessage[]): TelegramMessage[] {
  const joined: TelegramMessage[] = []
  for (const message of messages) {
    const at = joined.findIndex(
      ({ album, chat, person }) => album !== undefined && album === message.album && chat === message.chat && person === message.person,
    )
    const first = joined[at]
    if (first === undefined) joined.push(message)
    else
      joined[at] = {
        ...first,
        text: [first.text, message.text].filter((each) => each !== '').join('\n'),
        photos: [...first.photos, ...message.photos],
      }
  }
  return joined
}

function fields(value: unknown): JsonFields {
  return isObject(value) ? value : {}
}

function whole(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : undefined
}

function textOf({ text, caption }: JsonFields): string {
  return typeof text === 'string' ? text : typeof caption === 'string' ? caption : ''
}

type Entity = JsonFields & { readonly type: string; readonly offset: number; readonly length: number }

/** Offsets count UTF-16 units, as strings do here. */
function entitiesOf({ entities, caption_entities }: JsonFields): Entity[] {
  const found = entities ?? caption_entities
  return Array.isArray(found) ? found.filter(isEntity) : []
}

function isEntity(value: unknown): value is Entity {
  return isObject(value) && typeof value.type === 'string' && whole(value.offset) !== undefined && whole(value.length) !== undefined
}

/** Returns the entities that address the bot: by its name, by a link to it, or as a command with its name. */
function mentions(body: JsonFields, text: string, { id, username }: Self): Entity[] {
  const name = `@${username.toLowerCase()}`
  return entitiesOf(body).filter((entity) => {
    const part = text.slice(entity.offset, entity.offset + entity.length).toLowerCase()
    if (entity.type === 'mention') return part === name
    if (entity.type === 'bot_command') return part.endsWith(name)
    return entity.type === 'text_mention' && fields(entity.user).id === id
  })
}

/** Removes the mentions of the bot, but only the bot's name from `/stop@bot`. */
function withoutMentions(text: string, named: readonly Entity[]): string {
  const cut = named.toSorted((a, b) => b.offset - a.offset)
  return cut
    .reduce((rest, { type, offset, length }) => {
      const part = rest.slice(offset, offset + length)
      return rest.slice(0, offset) + (type === 'bot_command' ? part.slice(0, part.lastIndexOf('@')) : '') + rest.slice(offset + length)
    }, text)
    .trim()
}

function isReplyTo({ reply_to_message: original }: JsonFields, { id }: Self): boolean {
  return fields(fields(original).from).id === id
}

/** Returns the command of a message. In a group it counts only with the name of the bot, because other bots may have the same command. */
function commandIn(body: JsonFields, text: string, { username }: Self): ChatCommand | undefined {
  const first = entitiesOf(body).find(({ type, offset }) => type === 'bot_command' && offset === 0)
  const [word = '', name] = text.slice(1, first?.length).toLowerCase().split('@')
  if (first === undefined || (name !== undefined && name !== username.toLowerCase())) return undefined
  return word === 'start' || word === 'stop' || word === 'new' ? word : undefined
}

/** Returns the largest size of a photo, or a picture that was sent as a file. */
function photosOf({ photo, document }: JsonFields): Omit<Photo, 'messageId'>[] {
  const sizes = (Array.isArray(photo) ? photo : []).flatMap(photoIn).toSorted((a, b) => b.pixels - a.pixels)
  const { mime_type: type } = fields(document)
  const asFile = typeof type === 'string' && /^image\/(jpeg|png|webp)$/.test(type) ? photoIn(document) : []
  return [...sizes.slice(0, 1), ...asFile].slice(0, 1).map(({ pixels: _, ...found }) => found)
}

function photoIn(value: unknown): (Omit<Photo, 'messageId'> & { readonly pixels: number })[] {
  const { file_id: fileId, file_size, width, height } = fields(value)
  const bytes = whole(file_size)
  if (typeof fileId !== 'string' || fileId === '' || fileId.length > 500) return []
  return [{ fileId, pixels: (whole(width) ?? 0) * (whole(height) ?? 0), bytes }]
}

function whyNoText(body: JsonFields): string {
  const other = ['voice', 'audio', 'video', 'video_note', 'sticker', 'document', 'poll', 'location', 'contact'].find(
    (kind) => body[kind] !== undefined,
  )
  return other === undefined ? 'it has no text' : `${other.replace('_', ' ')} messages are not supported`
}
