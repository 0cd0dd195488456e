// Everything that the board page can do; what keeps it true is in live.js.
import "./drawer.js";
import "./card-form.js";
import "./drag.js";
import "./menu.js";
import "./keyboard.js";
import "./approve.js";
import "./filter.js";
import "./more.js";
import "./density.js";
import "./summary.js";
