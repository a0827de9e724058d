// Messages of a chat, exactly as they were sent, and the tools that a worker wants to be called.
import { html } from "./html.js";
import { Text, line } from "./text.js";

export function Messages({ messages }) {
  return messages.map(
    (message) => html`<div class=${`message ${message.role}`}>
      <p class="role">${message.role}${message.tool_call_id ? `, for call ${line(message.tool_call_id, 40)}` : ""}</p>
      <${Text} text=${message.content} />
      ${message.images.map((image) => html`<p class="none">an image: ${line(image, 80)}</p>`)}
      ${message.tool_calls.map((call) => html`<p class="tool">called ${line(call.name, 80)}</p><${Text} text=${call.arguments} />`)}
    </div>`,
  );
}

export function WantedCalls({ calls }) {
  return calls.map((call) => html`<p class="tool">wants <b>${line(call.name, 80)}</b> to be called with</p><${Text} text=${call.arguments} />`);
}
